"""Puts the prompt together: what never changes first, what changes with every question last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haversack.templates.chat import (
    PREAMBLE,
    QUESTION_HEADING,
    REPLY_FRAMING,
    Counter,
    context_heading,
    message_tokens,
    render_block,
    sendable,
)
from haversack.types import Block, History, Message, Packed, Plan, Prompt, Role, Settings

# The heading of the context names the number of blocks; before packing it is counted with as many digits as it can get.
MANY_BLOCKS = 9_999


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of a prompt by part. `framing` of each message is in its part; they add up to `Prompt.tokens`."""

    system: int
    history: int
    question: int
    context: int

    @property
    def total(self) -> int:
        return self.system + self.history + self.question + self.context


def assemble(
    packed: Packed, history: History, plan: Plan, settings: Settings, counter: Counter
) -> tuple[Prompt, Costs]:
    """The messages, in an order that keeps the head equal from turn to turn: system, history, context with question."""
    system = sendable(system_message(settings))
    past = tuple(sendable(message) for message in history.messages)
    asked = sendable(user_message(packed.blocks, plan.request.text))
    context = sum(block.tokens for block in packed.blocks)
    costs = Costs(
        system=message_tokens(system, counter) + REPLY_FRAMING,
        history=sum(message_tokens(message, counter) for message in past),
        question=message_tokens(asked, counter) - context,
        context=context,
    )
    stable = sum(len(message.content) for message in (system, *past))
    return Prompt((system, *past, asked), costs.total, stable), costs


def fixed_cost(plan: Plan, settings: Settings, counter: Counter) -> int:
    """Tokens that a prompt with context takes before any context or history is in it."""
    framed = context_heading(MANY_BLOCKS) + QUESTION_HEADING + plan.request.text
    asked = message_tokens(Message(Role.USER, framed), counter)
    return message_tokens(system_message(settings), counter) + REPLY_FRAMING + asked


def system_message(settings: Settings) -> Message:
    text = settings.system_prompt.strip()
    return Message(Role.SYSTEM, f"{PREAMBLE}\n\n{text}" if text else PREAMBLE)


def user_message(blocks: Sequence[Block], question: str) -> Message:
    """The context, then the question; the question alone when there is no context."""
    if not blocks:
        return Message(Role.USER, question)
    context = "".join(render_block(block) for block in blocks)
    return Message(Role.USER, context_heading(len(blocks)) + context + QUESTION_HEADING + question)
