"""When warning and compaction fire, and what gives way to what, at every size of window."""

from __future__ import annotations

from dataclasses import replace

import pytest
from line_builders import make_route

from haversack.types import (
    CompactTier,
    HaversackError,
    History,
    OverBudget,
    Packed,
    Request,
    Room,
    Settings,
    WindowState,
)
from haversack.window import Divided, conversation_room, divide, share_rest

SETTINGS = Settings()
WINDOWS = (4_000, 8_000, 16_000, 32_000, 128_000, 200_000, 1_000_000, 2_000_000)


def fitted(window: int, history: int, needed: int = 0, settings: Settings = SETTINGS, tools: int = 0) -> Divided:
    """A conversation that can be cut to any size and a context that takes all it gets, at least `needed`."""
    route = make_route(window, reserve=window // 4, gather_budget=window)

    def compacting(room: Room) -> History:
        if history <= room.limit:
            return History((), CompactTier.NONE, history, history)
        if room.limit < 1:
            raise HaversackError("context_window_exceeded", "full")
        return History((), CompactTier.PLAIN_FALLBACK, history, min(room.aim, room.limit))

    def packing(budget: int) -> Packed:
        if needed > budget:
            raise OverBudget(needed, budget, ())
        return Packed((), (), budget, budget)

    request = Request("why?", tools_tokens=tools)
    return divide(
        request, route, settings, fixed=100, compacting=compacting, packing=packing, required=lambda packed: needed
    )


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("part", ["history", "tools", "needed"])
def test_warning_at_80_and_compaction_at_90_percent_of_the_window(window: int, part: str) -> None:
    """Whatever fills it: the conversation, the tools, or files that must be in."""

    def state(percent: float) -> WindowState:
        rest = int(window * percent / 100) - 100
        if part == "history":
            return fitted(window, rest).history.state
        other = rest - window // 3
        tools, needed = (other, 0) if part == "tools" else (0, other)
        return fitted(window, window // 3, needed=needed, tools=tools).history.state

    assert [state(percent) for percent in (50, 79, 81, 89, 91, 99)] == [
        WindowState.OK,
        WindowState.OK,
        WindowState.WARNING,
        WindowState.WARNING,
        WindowState.COMPACTED,
        WindowState.COMPACTED,
    ]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("percent", [0, 30, 60, 75, 85, 89, 95])
def test_prompt_and_reply_fit_and_the_reply_keeps_a_tenth(window: int, percent: int) -> None:
    """At every size and fullness; gathered context alone never makes a conversation shorter."""
    history = max(0, window * percent // 100 - 100)
    result = fitted(window, history)
    total = 100 + result.history.tokens_after + result.packed.used
    assert total + result.route.reply_reserve <= window
    assert result.route.reply_reserve >= window // 10 - 1
    assert (result.history.tokens_after == history) == (percent < 90)
    if percent <= 85:
        assert result.packed.budget > 0


def test_the_shares_are_settings() -> None:
    """A user who wants compaction earlier gets it earlier, and the warning too."""
    early = replace(SETTINGS, warning_share=0.3, compact_share=0.5)
    assert fitted(16_000, 6_000).history.state is WindowState.OK
    assert fitted(16_000, 6_000, settings=early).history.state is WindowState.WARNING
    assert fitted(16_000, 9_000, settings=early).history.state is WindowState.COMPACTED


def test_the_shares_are_settings_of_the_rooms_as_well() -> None:
    """Where summaries are written ahead follows the warning's share; the part above the other is the reply's."""
    route = make_route(16_000, reserve=9_000)
    early = replace(SETTINGS, warning_share=0.3, compact_share=0.5)
    assert conversation_room(route, early, 0).warning == 4_800
    assert share_rest(route, SETTINGS, 8_000).reply_reserve == 4_000
    assert share_rest(route, early, 8_000).reply_reserve == 8_000


def test_what_is_required_comes_before_old_messages() -> None:
    """Required context takes the conversation's room; what is only found does not."""
    assert fitted(16_000, 9_000).history.tier is CompactTier.NONE
    result = fitted(16_000, 9_000, needed=8_000)
    assert result.history.tier is CompactTier.PLAIN_FALLBACK
    assert result.packed.budget >= 8_000


def test_what_cannot_fit_at_all_is_refused() -> None:
    """System text and tools over the window, and required items over what is left beside nothing else."""
    with pytest.raises(HaversackError, match="more than the window"):
        fitted(4_000, 0, tools=4_000)
    with pytest.raises(OverBudget):
        fitted(4_000, 100, needed=3_900)


def test_a_tiny_window_keeps_the_shortest_reply() -> None:
    """Where a tenth of the window is no reply, 256 tokens stay free, or half of the reserve there was."""
    route = make_route(1_000, reserve=250)
    assert conversation_room(route, SETTINGS, 0).limit == 750
    assert share_rest(route, SETTINGS, 750).reply_reserve <= 250
