"""Diagnostics of policy files while they are edited, published for no other document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lsprotocol import types as lsp

from haversack import types, uris
from haversack.documents import Encoding, column_of
from haversack.lsp.dispatch import Dispatcher
from haversack.policy.findings import Finding
from haversack.session import Session
from haversack_index.text import split_lines

SOURCE = "haversack"


class PolicyFileDiagnostics:
    """Follows the open policy files of one client. Checks run on a thread, one at a time for each document."""

    def __init__(self, connection: Dispatcher, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._stale: set[str] = set()  # changed since the check under way began

    def changed(self, uri: str) -> None:
        """A document was opened, changed or saved. What another policy file is worth may have changed with it."""
        if self._session.is_policy(uri):
            for each in self._session.documents.open_uris():
                if self._session.is_policy(each):
                    self._check_soon(each)

    def closed(self, uri: str) -> None:
        """A document was closed: its diagnostics go."""
        if self._session.is_policy(uri):
            self._publish(uri, [])

    def close(self) -> None:
        for task in self._checking.values():
            task.cancel()

    def _check_soon(self, uri: str) -> None:
        key = uris.canonical(uri)
        if key in self._checking:
            self._stale.add(key)
            return
        task = asyncio.get_running_loop().create_task(self._check(uri))
        self._checking[key] = task
        task.add_done_callback(lambda _: self._checking.pop(key, None))

    async def _check(self, uri: str) -> None:
        key = uris.canonical(uri)
        while (document := self._session.documents.get(uri)) is not None and self._session.is_policy(uri):
            self._stale.discard(key)
            text = document.text
            merged = await self._session.check_policy(uri, text)
            if key in self._stale:
                continue
            if self._session.documents.get(uri) is not None:
                encoding = self._session.documents.encoding
                self._publish(document.uri, diagnostics_of(merged.findings, merged.layers[-1], text, encoding))
            return

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic]) -> None:
        params = lsp.PublishDiagnosticsParams(uri, diagnostics)
        self._connection.notify(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)


def diagnostics_of(findings: Sequence[Finding], layer: str, text: str, encoding: Encoding) -> list[lsp.Diagnostic]:
    """The findings of one layer, with columns as the client counts them."""
    lines = split_lines(text)

    def place(position: types.Position) -> lsp.Position:
        line = lines[position.line] if position.line < len(lines) else ""
        return lsp.Position(position.line, column_of(line, position.character, encoding))

    found = [each for each in findings if each.layer == layer]
    found.sort(key=lambda each: (each.range.start.line, each.range.start.character, each.severity))
    return [
        lsp.Diagnostic(
            range=lsp.Range(place(each.range.start), place(each.range.end)),
            message=f"{each.message}\n{each.remedy}",
            severity=lsp.DiagnosticSeverity(int(each.severity)),
            code=each.code,
            source=SOURCE,
        )
        for each in found
    ]
