"""The line for one session, with the requests that pause on it until their client has opened sealed messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from haversack import sealed, turns
from haversack.pipeline import Paused, Services
from haversack.turns import Turns, gone
from haversack.types import Bundle, Folder, Message, OpenedRecord, Policy, Request, Settings, Snapshot
from haversack.workspace import Workspace


class Line(Protocol):
    """What answers questions: the module `haversack.pipeline`, or a test's own."""

    def run(self, request: Request, workspace: Workspace, services: Services) -> Awaitable[Bundle]: ...
    def resume(self, paused: Paused, opened: Mapping[str, Message]) -> Awaitable[Bundle]: ...
    def preview(self, request: Request, workspace: Workspace) -> Awaitable[Bundle]: ...


@dataclass(frozen=True, slots=True)
class Turn:
    """A waiting request, and the session's rules when it was asked."""

    paused: Paused
    asked: Snapshot


class Pausing:
    def __init__(self, line: Line) -> None:
        self.turns = Turns[Turn]()
        self._line = line

    async def run(self, request: Request, workspace: Workspace, services: Services) -> Bundle:
        """The answer; or, with a `turn`, the question which sealed messages are needed for it."""
        bundle = await self._line.run(request, workspace, services)
        if not isinstance(bundle, Paused):
            return bundle
        turn = self.turns.hold(Turn(bundle, workspace.snapshot))
        asyncio.get_running_loop().call_later(turns.WAIT, self.turns.expire)
        return replace(bundle, turn=turn, expires_in=turns.WAIT)

    def accept(self, turn: str, records: Sequence[OpenedRecord]) -> tuple[Turn, Mapping[str, Message]]:
        """The request that waits under this id, and its sealed messages in the clear.

        Records that are not exactly those asked for are refused, and the turn waits on; right ones use it up.
        """
        waiting = self.turns.find(turn)
        clear = sealed.opened(waiting.paused.to_decrypt, records)
        self.turns.answered(turn)
        return waiting, clear

    async def go_on(self, turn: Turn, clear: Mapping[str, Message], now: Snapshot) -> tuple[Request, Workspace, Bundle]:
        """The answer, after the request and the workspace that it is for. Refused when the rules of `now` are others:
        the user may have restricted what was gathered under the old ones."""
        if _rules(now) != _rules(turn.asked):
            raise gone("sealed_turn_outdated")
        held, bundle = turn.paused.held, await self._line.resume(turn.paused, clear)
        return held.plan.request, held.workspace, bundle

    def abandon(self, turn: str) -> None:
        """The client will not come back to it. Nothing happens when it is over already."""
        self.turns.give_up(turn, "sealed_turn_abandoned")

    def preview(self, request: Request, workspace: Workspace) -> Awaitable[Bundle]:
        return self._line.preview(request, workspace)

    def folders_of(self, turn: str) -> tuple[Folder, ...]:
        """Workspace folders as they were when a waiting request was asked. Raises when none waits under this id."""
        return self.turns.find(turn).paused.held.workspace.snapshot.folders


def _rules(snapshot: Snapshot) -> tuple[Policy, Settings, bool, tuple[Folder, ...]]:
    """What decides which text may leave."""
    return snapshot.policy, snapshot.settings, snapshot.trusted, snapshot.folders
