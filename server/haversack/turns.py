"""Requests that wait for their client: a bounded number of them, each for a bounded time, each resumed once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from haversack.types import HaversackError

T = TypeVar("T")

# Seconds that a turn waits: long enough to type a passphrase, short enough not to answer from yesterday's files.
WAIT = 300.0
# Turns that wait at a time. One keeps all that was gathered for it; a client has a conversation or two in the open.
MOST_WAITING = 16
# Ids of past turns that are remembered, so that a late or repeated answer hears why it is one.
MOST_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T]):
    what: T
    until: float


class Turns(Generic[T]):
    """Not thread-safe: lives on the event loop, like the session that owns it. `clock` never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting[T]] = {}  # oldest first
        self._past: dict[str, str] = {}  # id of a turn that is over → error code of whoever comes back to it

    def __len__(self) -> int:
        return len(self._waiting)

    def hold(self, what: T) -> str:
        """Keep it and give the id to come back with. Where there are too many, the oldest is given up."""
        self.expire()
        while len(self._waiting) >= MOST_WAITING:
            self._end(next(iter(self._waiting)), "sealed_turn_expired")
        turn = secrets.token_urlsafe(16)
        self._waiting[turn] = _Waiting(what, self._clock() + WAIT)
        return turn

    def find(self, turn: str) -> T:
        """What waits under this id; it goes on waiting. Raises when nothing does, and says why."""
        self.expire()
        if turn not in self._waiting:
            raise gone(self._past.get(turn, "sealed_unknown_turn"))
        return self._waiting[turn].what

    def answered(self, turn: str) -> None:
        """The client's answer was accepted: let go of the turn; whoever answers again is refused."""
        self._end(turn, "sealed_turn_replayed")

    def give_up(self, turn: str, code: str) -> None:
        """Let go of a turn for the reason that `code` names; one that is over keeps the reason it had."""
        if turn in self._waiting:
            self._end(turn, code)

    def expire(self) -> None:
        """Let go of what has waited too long. Called at every use, and by a timer when there is none."""
        now = self._clock()
        for turn in [turn for turn, waiting in self._waiting.items() if waiting.until <= now]:
            self._end(turn, "sealed_turn_expired")

    def clear(self) -> None:
        for turn in list(self._waiting):
            self._end(turn, "sealed_turn_expired")

    def _end(self, turn: str, code: str) -> None:
        self._waiting.pop(turn, None)
        self._past[turn] = code
        while len(self._past) > MOST_REMEMBERED:
            del self._past[next(iter(self._past))]


def gone(code: str) -> HaversackError:
    """The error of whoever comes back to a turn that is over."""
    message = {
        "sealed_unknown_turn": "No request waits under this id.",
        "sealed_turn_expired": "The request has waited too long for its sealed messages and was given up.",
        "sealed_turn_abandoned": "The client has given up this request.",
        "sealed_turn_outdated": "Settings, policy, trust or folders are not those that the question was asked under.",
        "sealed_turn_replayed": "This request has already gone on with its sealed messages.",
    }
    return HaversackError(code, message[code], "Ask the question again.")
