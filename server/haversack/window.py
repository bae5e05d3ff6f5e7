"""Divides the window between what must be in the prompt, the conversation, gathered context and the reply. Pure.

The order of giving way, first to last: context that nobody asked for by name, the reply's reserve down to a tenth of
the window, the conversation, the reply down to its shortest. What is required never does: then the request is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from haversack.room import MIN_REPLY, context_budget
from haversack.types import (
    CompactTier,
    HaversackError,
    History,
    OverBudget,
    Packed,
    Request,
    Room,
    Route,
    Settings,
    WindowState,
)

# Compaction goes down to this part of where it starts: further turns then fit without one, and the head of the prompt
# stays the same for the provider's cache. Lower, and more would be forgotten than the next turns need.
AIM_SHARE = 0.65


@dataclass(frozen=True, slots=True)
class Divided:
    route: Route
    history: History
    packed: Packed


def divide(
    request: Request,
    route: Route,
    settings: Settings,
    *,
    fixed: int,
    compacting: Callable[[Room], History],
    packing: Callable[[int], Packed],
    required: Callable[[Packed], int],
) -> Divided:
    """The conversation within its room and the context in what is left; required items come before old messages.

    `fixed`: tokens of system text and question. `required`: what of a packed context had to be in it, in tokens.
    """
    others = fixed + request.tools_tokens
    room = conversation_room(route, settings, others)
    if room.limit < 0:
        raise _no_room(route, last_room(route, others).limit)

    def served(history: History, needed: int) -> Divided:
        way = share_rest(route, settings, others + history.tokens_after + needed)
        budget = context_budget(way, request, system=fixed, question=0, history=history.tokens_after)
        packed = packing(max(budget, needed))
        return Divided(way, measured(history, route, settings, others + required(packed)), packed)

    history = _compacted(compacting, room, last_room(route, others))
    try:
        first = served(history, 0)
        needed, refusal = required(first.packed), None
        if history.tokens_after + needed <= room.limit or history.tier is not CompactTier.NONE:
            return first
    except OverBudget as error:
        needed, refusal = int(str(error.details["needed"])), error
        # What pays off with a model is no limit to what must be in: that is the window, or the request's own budget.
        # Parts of a document that must be in are few and small each: the request's budget does not drop them.
        capped = request.budget_tokens is not None and request.document is None
        wanted = (request.budget_tokens or 0) if capped else route.window
        alone = share_rest(route, settings, others + needed)
        most = context_budget(alone, replace(request, budget_tokens=wanted), system=fixed, question=0, history=0)
        if needed > most:
            packing(most)  # the refusal with the room that there is
            raise
    room = conversation_room(route, settings, others + needed)
    try:
        return served(_compacted(compacting, room, last_room(route, others + needed)), needed)
    except HaversackError as error:
        raise refusal or error from None


def conversation_room(route: Route, settings: Settings, others: int) -> Room:
    """What the conversation may take beside `others`: all else that must be in the prompt.

    The shares are of the whole window as capped, at every size: the reply's reserve is wide while there is room, and
    narrows to what is above `compactShare` before anything that was said is given up. Context that nobody asked for by
    name does not count, since it gets what is left: a conversation is never compacted for its sake.
    """
    # In a window so small that the shares leave less than the shortest reply, that reply keeps its room all the same.
    limit = min(int(route.window * settings.compact_share), route.window - min(MIN_REPLY, route.reply_reserve))
    warning = min(int(route.window * settings.warning_share), limit)
    return Room(limit - others, warning - others, max(0, int(limit * AIM_SHARE) - others))


def last_room(route: Route, others: int) -> Room:
    """The most that a conversation can get: what must stay of it may take the reply's room but for the shortest."""
    limit = route.window - min(MIN_REPLY, route.reply_reserve) - others
    return Room(limit, limit, limit)


def share_rest(route: Route, settings: Settings, prompt_tokens: int) -> Route:
    """The route with what the prompt leaves of the window halved between the reply and gathered context.

    The reply has no more than it had, and no less than the part of the window above `compactShare` as far as that is
    left: so a long conversation narrows both, and neither is gone before it is compacted.
    """
    left = max(0, route.window - prompt_tokens)
    least = min(left, route.window - int(route.window * settings.compact_share))
    return replace(route, reply_reserve=min(route.reply_reserve, max(left // 2, least)))


def measured(history: History, route: Route, settings: Settings, others: int) -> History:
    """The history with how full the window is: `others` is all else in the prompt that does not give way."""
    used = others + history.tokens_after
    state = WindowState.OK if used <= route.window * settings.warning_share else WindowState.WARNING
    if history.tier is not CompactTier.NONE:
        state = WindowState.COMPACTED
    return replace(history, used=used, state=state, warning=state is not WindowState.OK)


def _compacted(compacting: Callable[[Room], History], room: Room, last: Room) -> History:
    try:
        return compacting(room)
    except HaversackError:
        return compacting(last)


def _no_room(route: Route, room: int) -> HaversackError:
    return HaversackError(
        "context_window_exceeded",
        f"Question, system text and tools take {-room:,} tokens more than the window of {route.window:,} has room for "
        f"beside the shortest reply.",
        "Shorten the question or the system prompt, offer fewer tools, or choose a model with a larger window.",
        needed=route.window - min(MIN_REPLY, route.reply_reserve) - room,
        budget=route.window - min(MIN_REPLY, route.reply_reserve),
    )
