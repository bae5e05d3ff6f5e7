"""How the messages of a conversation hang together: calls with results, turns, what must stay, what names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from haversack.types import Message, Role

# How a summary begins; read again when it is folded into another one.
SUMMARY_HEAD = re.compile(r"\[Summary of (\d{1,9}) earlier messages?\b[^\]\n]*\]\n?")


def exchanges(messages: Sequence[Message]) -> tuple[tuple[int, ...], ...]:
    """Places grouped so that a message with tool calls is together with all its results, in order of first place."""
    group_of_call: dict[str, list[int]] = {}
    groups: list[list[int]] = []
    group: list[int] | None
    for at, message in enumerate(messages):
        group = group_of_call.get(message.tool_call_id) if message.tool_call_id else None
        if group is None:
            group = []
            groups.append(group)
        group.append(at)
        for call in message.tool_calls:
            group_of_call[call.id] = group
    return tuple(tuple(group) for group in groups)


def untouchable(messages: Sequence[Message], keep_recent: int) -> frozenset[int]:
    """Places of messages that stay as they are: recent, pinned and system ones, with their whole exchanges."""
    recent = len(messages) - keep_recent
    fixed = {at for at, m in enumerate(messages) if at >= recent or m.pinned or m.role is Role.SYSTEM}
    for group in exchanges(messages):
        if fixed.intersection(group):
            fixed.update(group)
    return frozenset(fixed)


def turns(messages: Sequence[Message], without: frozenset[int]) -> tuple[tuple[int, ...], ...]:
    """Places from one user message to the next, exchanges whole, leaving out `without`."""
    found: list[list[int]] = []
    for group in exchanges(messages):
        if without.intersection(group):
            continue
        if not found or messages[group[0]].role is Role.USER:
            found.append([])
        found[-1].extend(group)
    return tuple(tuple(sorted(turn)) for turn in found)


def key_of(messages: Iterable[Message], purpose: str) -> str:
    """A name for the content of some messages: the same content has the same name in every turn."""
    digest = blake2b(digest_size=16)
    for message in messages:
        parts = [message.role.value, message.content, message.tool_call_id]
        parts += [message.sealed.commitment] if message.sealed else []
        parts += [part for call in message.tool_calls for part in (call.id, call.name, call.arguments)]
        for part in parts:
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return f"{purpose}:{digest.hexdigest()}"


def is_summary(message: Message) -> bool:
    return bool(message.summary_of) or (message.role is Role.USER and SUMMARY_HEAD.match(message.content) is not None)


def n_stood_for(message: Message) -> int:
    """How many messages one stands for: itself, or as many as it says."""
    head = SUMMARY_HEAD.match(message.content) if message.role is Role.USER else None
    return int(head[1]) if head else max(1, len(message.summary_of))
