"""The line for one session, with the requests that pause on it until their client has opened sealed messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from haversack import sealed, turns
from haversack.pipeline import Paused, Services
from haversack.turns import Turns
from haversack.types import Bundle, Folder, Message, OpenedRecord, Request
from haversack.workspace import Workspace


class Line(Protocol):
    """What answers questions: the module `haversack.pipeline`, or a test's own."""

    def run(self, request: Request, workspace: Workspace, services: Services) -> Awaitable[Bundle]: ...
    def resume(self, paused: Paused, opened: Mapping[str, Message]) -> Awaitable[Bundle]: ...
    def preview(self, request: Request, workspace: Workspace) -> Awaitable[Bundle]: ...


class Pausing:
    def __init__(self, line: Line) -> None:
        self.turns = Turns[Paused]()
        self._line = line

    async def run(self, request: Request, workspace: Workspace, services: Services) -> Bundle:
        """The answer; or, with a `turn`, the question which sealed messages are needed for it."""
        bundle = await self._line.run(request, workspace, services)
        if not isinstance(bundle, Paused):
            return bundle
        turn = self.turns.hold(bundle)
        asyncio.get_running_loop().call_later(turns.WAIT, self.turns.expire)
        return replace(bundle, turn=turn, expires_in=turns.WAIT)

    async def resume(self, turn: str, records: Sequence[OpenedRecord]) -> tuple[Request, Workspace, Bundle]:
        """The answer, after the request and the workspace that it is for.

        Records that are not exactly those asked for are refused, and the turn waits on; right ones use it up.
        """
        paused = self.turns.find(turn)
        clear = sealed.opened(paused.to_decrypt, records)
        self.turns.answered(turn)
        held, bundle = paused.held, await self._line.resume(paused, clear)
        return held.plan.request, held.workspace, bundle

    def preview(self, request: Request, workspace: Workspace) -> Awaitable[Bundle]:
        return self._line.preview(request, workspace)

    def folders_of(self, turn: str) -> tuple[Folder, ...]:
        """Workspace folders as they were when a waiting request was asked. Raises when none waits under this id."""
        return self.turns.find(turn).held.workspace.snapshot.folders
