"""Waiting requests: bounded in number and age, and let go of for good."""

from __future__ import annotations

import gc
import weakref

import pytest

from haversack import turns
from haversack.turns import Turns
from haversack.types import HaversackError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Thing:
    """Something that a weak reference can point to."""


def code_of(waiting: Turns[Thing], turn: str) -> str:
    with pytest.raises(HaversackError) as refused:
        waiting.find(turn)
    assert refused.value.remedy
    return refused.value.code


def test_a_turn_waits_until_it_is_answered() -> None:
    """Looking does not use it up; answering does, and an answer to it again is a replay."""
    waiting, thing = Turns[Thing](Clock()), Thing()
    turn = waiting.hold(thing)
    assert waiting.find(turn) is waiting.find(turn) is thing
    waiting.answered(turn)
    assert code_of(waiting, turn) == "sealed_turn_replayed"
    assert code_of(waiting, "another") == "sealed_unknown_turn"


def test_a_turn_that_has_waited_too_long_is_given_up() -> None:
    """To the second, whatever else waits."""
    clock = Clock()
    waiting = Turns[Thing](clock)
    first = waiting.hold(Thing())
    clock.now = turns.WAIT / 2
    second = waiting.hold(Thing())
    clock.now = turns.WAIT - 0.001
    assert waiting.find(first)
    clock.now = turns.WAIT
    assert code_of(waiting, first) == "sealed_turn_expired"
    assert waiting.find(second)


def test_no_more_wait_than_there_is_room_for() -> None:
    """The oldest gives way, and hears so."""
    waiting = Turns[Thing](Clock())
    ids = [waiting.hold(Thing()) for _ in range(turns.MOST_WAITING + 2)]
    assert len(waiting) == turns.MOST_WAITING
    assert [code_of(waiting, turn) for turn in ids[:2]] == ["sealed_turn_expired"] * 2
    assert waiting.find(ids[2])


@pytest.mark.parametrize("end", ["answered", "expired", "cleared", "crowded"])
def test_what_waited_is_let_go_of(end: str) -> None:
    """However a turn ends, nothing keeps what was gathered for it."""
    clock = Clock()
    waiting, thing = Turns[Thing](clock), Thing()
    reference, turn = weakref.ref(thing), waiting.hold(thing)
    del thing
    assert reference() is not None
    match end:
        case "answered":
            waiting.answered(turn)
        case "expired":
            clock.now = turns.WAIT
            waiting.expire()
        case "cleared":
            waiting.clear()
        case _:
            for _ in range(turns.MOST_WAITING):
                waiting.hold(Thing())
    gc.collect()
    assert reference() is None


def test_only_so_many_past_turns_are_remembered() -> None:
    """The oldest are forgotten first, so the memory of a long day stays small."""
    waiting = Turns[Thing](Clock())
    ids = [waiting.hold(Thing()) for _ in range(turns.MOST_REMEMBERED + 1) if len(waiting) < 2 or not waiting.clear()]
    waiting.clear()
    assert code_of(waiting, ids[0]) == "sealed_unknown_turn"
    assert code_of(waiting, ids[-1]) == "sealed_turn_expired"
    assert len(waiting._past) == turns.MOST_REMEMBERED


def test_ids_cannot_be_guessed() -> None:
    """Each is new and long enough."""
    waiting = Turns[Thing](Clock())
    ids = {waiting.hold(Thing()) for _ in range(100)}
    assert len(ids) == 100
    assert min(map(len, ids)) >= 22
