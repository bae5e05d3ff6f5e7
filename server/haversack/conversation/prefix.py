"""How much of a prompt begins as the one before did, byte for byte: what a provider's cache need not read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haversack.types import Message


@dataclass(frozen=True, slots=True)
class Sent:
    """A prompt as one text for each message, with who said it and its calls."""

    parts: tuple[str, ...]

    @property
    def length(self) -> int:
        return sum(map(len, self.parts))


def sent(messages: Sequence[Message]) -> Sent:
    return Sent(tuple(map(_flat, messages)))


def shared(before: Sent, now: Sent) -> int:
    """Characters from the start that are equal in both."""
    n_shared = 0
    for one, other in zip(before.parts, now.parts, strict=False):
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            return n_shared + next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
        n_shared += len(one)
    return n_shared


def _flat(message: Message) -> str:
    calls = "".join(f"\x00{call.id}\x00{call.name}\x00{call.arguments}" for call in message.tool_calls)
    return f"{message.role.value}\x00{message.tool_call_id}\x00{message.name}\x00{message.content}{calls}\x01"
