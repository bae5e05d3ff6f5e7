"""Puts the prompt together: what never changes first, what changes with every question last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from haversack.policy.privacy import UNNAMED_ORIGIN
from haversack.templates.chat import (
    PREAMBLE,
    QUESTION_HEADING,
    REPLY_FRAMING,
    Counter,
    context_heading,
    message_tokens,
    render_block,
    rules_heading,
    sendable,
)
from haversack.types import Block, History, Kind, Marked, Message, Packed, Plan, Prompt, Role, Scored, Settings

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
    rules = tuple(block for block in packed.blocks if block.kind is Kind.RULE)
    rest = tuple(block for block in packed.blocks if block.kind is not Kind.RULE)
    system = sendable(system_message(settings, rules))
    past = tuple(sendable(message) for message in history.messages)
    asked = sendable(user_message(rest, plan.request.text))
    context, of_rules = (sum(block.tokens for block in blocks) for blocks in (rest, rules))
    costs = Costs(
        system=message_tokens(system, counter) + REPLY_FRAMING - of_rules,
        history=sum(message_tokens(message, counter) for message in past),
        question=message_tokens(asked, counter) - context,
        context=context + of_rules,
    )
    stable = sum(len(message.content) for message in (system, *past))
    return Prompt((system, *past, asked), costs.total, stable), costs


def quoting(prompt: Prompt, packed: Packed, scored: Sequence[Scored]) -> Prompt:
    """The prompt with the files that its first and last message quote: a client that sends a message back as history
    names them by it, and what is restricted stays so whichever model the next question goes to."""
    system, *past, asked = prompt.messages
    quoted = [
        replace(message, origins=tuple(sorted({origin for item in parts for origin in _origins(item.marked)})))
        for message, parts in ((system, _served(packed, scored, True)), (asked, _served(packed, scored, False)))
    ]
    return replace(prompt, messages=(quoted[0], *past, quoted[1]))


def _served(packed: Packed, scored: Sequence[Scored], rules: bool) -> list[Scored]:
    ids = {id for block in packed.blocks if (block.kind is Kind.RULE) is rules for id in block.items}
    return [item for item in scored if item.marked.candidate.id in ids]


def _origins(marked: Marked) -> tuple[str, ...]:
    candidate = marked.candidate
    file = candidate.file
    named = (f"{file.folder}/{file.path}",) if file is not None and file.folder else ()
    unnamed = (UNNAMED_ORIGIN,) if marked.restricted else ()
    return (*named, *candidate.origins, *unnamed)


def fixed_cost(plan: Plan, settings: Settings, counter: Counter, *, rules: bool = False) -> int:
    """Tokens that a prompt with context takes before any context or history is in it. `rules`: some are to go in."""
    framed = context_heading(MANY_BLOCKS) + QUESTION_HEADING + plan.request.text
    asked = message_tokens(Message(Role.USER, framed), counter)
    system = system_message(settings)
    system = replace(system, content=f"{system.content}\n\n{rules_heading(MANY_BLOCKS)}") if rules else system
    return message_tokens(system, counter) + REPLY_FRAMING + asked


def system_message(settings: Settings, rules: Sequence[Block] = ()) -> Message:
    """What is the same from turn to turn, the rules of the project last: a change of them leaves what is before it."""
    text = settings.system_prompt.strip()
    head = f"{PREAMBLE}\n\n{text}" if text else PREAMBLE
    if rules:
        head += f"\n\n{rules_heading(len(rules))}" + "".join(render_block(block) for block in rules)
    return Message(Role.SYSTEM, head)


def user_message(blocks: Sequence[Block], question: str) -> Message:
    """The context, then the question; the question alone when there is no context."""
    if not blocks:
        return Message(Role.USER, question)
    context = "".join(render_block(block) for block in blocks)
    return Message(Role.USER, context_heading(len(blocks)) + context + QUESTION_HEADING + question)
