"""What the server asks of the editor: settings, file watching and progress bars, where the editor offers them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar, cast

from lsprotocol import types as lsp

from haversack.lsp.dispatch import Dispatcher
from haversack.lsp.from_lsp import offer
from haversack.types import Folder
from haversack_index.types import IndexState, IndexStatus

log = logging.getLogger("haversack.lsp")

T = TypeVar("T")

SECTION = "haversack"
# Seconds to wait for the editor's answer before going on without it.
ANSWER_TIMEOUT = 5.0
# Seconds of indexing before a progress bar appears: a saved file is indexed sooner and should not make one flicker.
PROGRESS_DELAY = 0.4
# Seconds between two reports: smooth to the eye, nothing for the pipe.
REPORT_INTERVAL = 0.15

_BUSY = frozenset({IndexState.SCANNING, IndexState.INDEXING})


class Editor:
    """The client's side of one connection, with the capabilities it named in `initialize`."""

    def __init__(self, connection: Dispatcher, capabilities: Mapping[str, Any]) -> None:
        self._connection = connection
        self._capabilities = capabilities
        self._latest: dict[str, IndexStatus] = {}
        self._showing: dict[str, asyncio.Task[None]] = {}

    async def settings(self) -> Mapping[str, Any] | None:
        """The editor's values of section "haversack"; None when it has no such request or does not answer."""
        if not offer(self._capabilities, "workspace", "configuration"):
            return None
        params = lsp.ConfigurationParams([lsp.ConfigurationItem(section=SECTION)])
        answer: Any = await self._ask(self._connection.send_request_async(lsp.WORKSPACE_CONFIGURATION, params))
        values: Any = answer[0] if answer else None
        return cast("Mapping[str, Any]", values) if isinstance(values, dict) else None

    async def watch_settings(self) -> None:
        """Ask to be told when section "haversack" changes, where the editor wants to be asked."""
        if offer(self._capabilities, "workspace", "didChangeConfiguration", "dynamicRegistration"):
            await self._register(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": SECTION})

    async def watch_files(self) -> bool:
        """Ask to be told of changed files; False when the editor cannot."""
        if not offer(self._capabilities, "workspace", "didChangeWatchedFiles", "dynamicRegistration"):
            return False
        options = lsp.DidChangeWatchedFilesRegistrationOptions([lsp.FileSystemWatcher(glob_pattern="**/*")])
        return await self._register(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    def show(self, folder: Folder, status: IndexStatus) -> None:
        """Let the progress bar of a folder follow its status."""
        self._latest[folder.key] = status
        busy = status.state in _BUSY
        if busy and folder.key not in self._showing and offer(self._capabilities, "window", "workDoneProgress"):
            task = asyncio.get_running_loop().create_task(self._show(folder))
            self._showing[folder.key] = task
            task.add_done_callback(lambda _: self._showing.pop(folder.key, None))

    def close(self) -> None:
        for task in self._showing.values():
            task.cancel()

    async def _show(self, folder: Folder) -> None:
        await asyncio.sleep(PROGRESS_DELAY)
        if not self._busy(folder):
            return
        token = str(uuid.uuid4())
        create = lsp.WorkDoneProgressCreateParams(token)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._connection.send_request_async(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE, create)
        except Exception as error:  # noqa: BLE001 - an editor that refuses gets no bar
            log.info("no progress bar: %s", type(error).__name__)
            return
        title = f"Haversack: indexing {folder.key}"
        begin = lsp.WorkDoneProgressBegin(title, cancellable=False, message="listing files", percentage=0)
        self._connection.progress.begin(token, begin)
        try:
            percentage = 0
            while self._busy(folder):
                await asyncio.sleep(REPORT_INTERVAL)
                status = self._latest[folder.key]
                percentage = max(percentage, _percentage(status))
                message = f"{status.done:,} of {status.total:,} files" if status.total else "listing files"
                report = lsp.WorkDoneProgressReport(cancellable=False, message=message, percentage=percentage)
                self._connection.progress.report(token, report)
        finally:
            end = lsp.WorkDoneProgressEnd(message=f"{self._latest[folder.key].n_files:,} files")
            self._connection.progress.end(token, end)

    def _busy(self, folder: Folder) -> bool:
        return self._latest[folder.key].state in _BUSY

    async def _register(self, method: str, options: object) -> bool:
        registration = lsp.Registration(id=f"{SECTION}:{method}", method=method, register_options=options)
        request = self._connection.send_request_async(
            lsp.CLIENT_REGISTER_CAPABILITY, lsp.RegistrationParams([registration])
        )
        return await self._ask(request, failed=False) is not False

    async def _ask(self, request: Awaitable[T], failed: Any = None) -> T | Any:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await request
        except Exception as error:  # noqa: BLE001 - an editor's refusal comes as an exception of pygls
            log.info("the editor did not answer: %s", type(error).__name__)
            return failed


class EditorModel:
    """The editor's own model, asked with `haversack/summarize`. Nobody knows where it runs, so it counts as remote."""

    name = "editor"
    remote = True

    def __init__(self, connection: Dispatcher) -> None:
        self._connection = connection

    async def ask(self, text: str, most: int, seconds: float) -> str:
        params = {"text": text, "maxTokens": most, "timeoutMs": int(1_000 * seconds)}
        answer: Any = await self._connection.send_request_async("haversack/summarize", params)
        fields = cast("dict[str, object]", answer if isinstance(answer, dict) else vars(answer))
        summary = fields.get("text")
        return summary if isinstance(summary, str) else ""


def _percentage(status: IndexStatus) -> int:
    return min(100, status.done * 100 // status.total) if status.total else 0
