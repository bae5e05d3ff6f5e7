"""Of two requests for one document the newer wins; other documents are left alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from haversack.fim.nouns import FimRequest
from haversack.lsp.fim_handlers import FimHandlers
from haversack.lsp.places import Position, Uint
from haversack.lsp.protocol import FIM, FimParams
from haversack.session import open_session


def test_a_newer_request_for_the_document_cancels_the_older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def hold(request: FimRequest, snapshot: object = None) -> Any:
        del snapshot
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(request.uri)
            raise

    async def main() -> tuple[bool, bool, bool]:
        async with open_session(tmp_path) as session:
            monkeypatch.setattr(session, "fim", hold)
            handler = FimHandlers(session).requests()[FIM]

            def ask(uri: str) -> asyncio.Task[Any]:
                params = FimParams(uri, Position(Uint(0), Uint(0)))
                return asyncio.get_running_loop().create_task(handler(params, ()))

            older, elsewhere, newer = ask("file:///a.py"), ask("file:///b.py"), ask("file:///a.py")
            await asyncio.wait([older], timeout=5)
            state = older.cancelled(), elsewhere.done(), newer.done()
            for task in (elsewhere, newer):
                task.cancel()
            await asyncio.wait([elsewhere, newer], timeout=5)
            return state

    assert asyncio.run(main()) == (True, False, False)
