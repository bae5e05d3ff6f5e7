"""Shortens a conversation because somebody asked for it: it acts, or says why it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from haversack.aliases import restricted_otherwise
from haversack.compact import CompactConfig, compact
from haversack.conversations import Conversations
from haversack.mark import may_not_leave
from haversack.policy import catalogue
from haversack.policy.confinement import confined
from haversack.policy.privacy import Privacy
from haversack.templates.chat import message_tokens
from haversack.tokens import counter
from haversack.types import CompactTier, HaversackError, History, Message, Problem, Request, Room
from haversack.window import AIM_SHARE
from haversack.workspace import Workspace

# Tiers that ask a model, each once.
ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Shortened:
    """`note` says what was done, or why nothing was. In tokens: `target`, what was aimed at; `window`, the model's."""

    history: History
    target: int
    window: int
    note: str
    problems: tuple[Problem, ...] = ()


async def shorten(
    messages: Sequence[Message],
    workspace: Workspace,
    conversations: Conversations,
    model: str | None = None,
    budget: int | None = None,
    *,
    conversation: str = "",
    local_only: bool = False,
) -> Shortened:
    """The conversation in `budget` tokens; without one, in what compaction aims at in the model's window, and in no
    more than that part of its own size. Raises `context_window_exceeded` when a budget is too small for what must stay.
    """
    snapshot = workspace.snapshot
    settings = confined(snapshot.settings, snapshot.policy, local_only=local_only)
    snapshot = replace(snapshot, settings=settings)
    resolved = catalogue.resolve(model or catalogue.load().default_model, settings, snapshot.policy.models)
    count = counter(resolved.tokenizer)
    before = await asyncio.to_thread(lambda: sum(message_tokens(message, count) for message in messages))
    window = min(resolved.window, settings.context_window or resolved.window)
    target = budget or int(AIM_SHARE * min(window * settings.compact_share, before))
    privacy = Privacy.compile(settings, tuple(folder.key for folder in snapshot.folders), snapshot.policy)
    held = conversations.held(
        Request("", history=tuple(messages), conversation=conversation, local_only=local_only), snapshot
    )
    otherwise = await workspace.run(restricted_otherwise, (), messages, workspace)
    private = may_not_leave(messages, replace(privacy, known_otherwise=otherwise))
    held = replace(held, private=private, barred=private if held.remote else frozenset[int]())
    config = CompactConfig.of(settings, resolved.family)
    shrink = partial(compact, messages, Room(target, target, target), count, config)
    problems: tuple[Problem, ...] = ()
    try:
        history = await asyncio.to_thread(shrink, held)
        for _ in range(ROUNDS):
            if not history.wanted:
                break
            held, trouble = await conversations.write(history.wanted, held, settings)
            problems = (*problems, *trouble)
            history = await asyncio.to_thread(shrink, held)
    except HaversackError as error:
        if budget is not None:
            raise
        kept = History(tuple(messages), CompactTier.NONE, before, before)
        return Shortened(kept, target, window, f"Nothing was shortened. {error.message}", problems)
    if history.tier is CompactTier.NONE:
        note = f"Nothing was shortened: {history.tokens_before:,} tokens fit into {target:,} as they are."
        return Shortened(history, target, window, note, problems)
    return Shortened(history, target, window, history.note, problems)
