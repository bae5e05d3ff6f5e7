"""One workspace folder's index while a session is open: a reader for questions and a worker process for changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from haversack.types import Folder, Settings
from haversack.workspace import Index
from haversack_index.types import IndexState, IndexStatus

log = logging.getLogger("haversack.indexing")

# Seconds of quiet after a change before the worker hears of it: a save-all or a branch switch comes as one batch, and
# a single save is still in the index before its author has typed a question.
DEBOUNCE = 0.2
# A batch is sent after this long even when changes keep coming, so that a busy build does not starve the index.
LONGEST_WAIT = 2.0
# More changed paths than this are a new state of the tree: one full pass is cheaper than asking for each.
MAX_PATHS = 5_000


class Reader(Index, Protocol):
    """What a session needs of `haversack_index.reader.IndexReader`."""

    def close(self) -> None: ...


class Worker(Protocol):
    """What a session needs of a worker process. All are quick: the work itself shows in the status."""

    async def start(self) -> None: ...
    async def update(self, paths: Sequence[str] | None) -> None: ...
    async def rebuild(self) -> None: ...
    async def configure(self, settings: Settings) -> None: ...
    async def stop(self) -> None: ...


class Indexing(Protocol):
    """How to open a folder's index. Tests bring their own."""

    def open_reader(self, folder: Folder, settings: Settings) -> Reader: ...
    def make_worker(self, folder: Folder, settings: Settings, on_status: Callable[[IndexStatus], None]) -> Worker: ...
    async def watch(self, folder: Folder, on_change: Callable[[Sequence[str] | None], None]) -> None: ...


Run = Callable[..., Awaitable[Reader]]


class FolderIndex:
    """The index of one folder. Everything here runs on the event loop; nothing here waits for the disk on it."""

    def __init__(
        self,
        folder: Folder,
        indexing: Indexing,
        settings: Settings,
        run: Run,
        on_status: Callable[[Folder, IndexStatus], None],
    ) -> None:
        self.folder = folder
        self.reader: Reader | None = None
        self.status = IndexStatus(folder.root, IndexState.SCANNING, 0, 0, 0, 0, 0, 0, 0)
        self._indexing = indexing
        self._settings = settings
        self._run = run
        self._on_status = on_status
        self._worker: Worker | None = None
        self._settled = asyncio.Event()
        self._pending: set[str] | None = set()  # None: everything
        self._first_pending = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Open the index and bring it up to date, in the background."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())

    def watch(self) -> None:
        """Watch the disk ourselves, for clients that do not."""
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    def changed(self, paths: Iterable[str] | None) -> None:
        """Files at `paths` (inside the folder) may have changed, appeared or gone; None: any of them."""
        if paths is None or self._pending is None:
            self._pending = None
        else:
            self._pending.update(paths)
            if len(self._pending) > MAX_PATHS:
                self._pending = None
        now = asyncio.get_running_loop().time()
        if self._timer is None:
            self._first_pending = now
        else:
            self._timer.cancel()
        wait = min(DEBOUNCE, max(0.0, self._first_pending + LONGEST_WAIT - now))
        self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def configure(self, settings: Settings) -> None:
        """Take new settings; a running worker hears of them, one that starts later starts with them."""
        old, self._settings = self._settings, settings
        if self._worker is not None and old != settings:
            self._later(self._worker.configure(settings))

    async def rebuild(self) -> None:
        """Forget the index and build it again."""
        self.start()
        self._settled.clear()
        await self._started()
        if self._worker is not None:
            await self._worker.rebuild()

    async def wait_settled(self) -> IndexStatus:
        """The status once the index is up to date, or known to stay incomplete."""
        self.start()
        await self._started()
        await self._settled.wait()
        return self.status

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._starting, self._watching, *self._sending) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._worker is not None:
            await self._worker.stop()
        if self.reader is not None:
            self.reader.close()
            self.reader = None
        self._settled.set()

    async def _started(self) -> None:
        if self._starting is not None:
            await asyncio.shield(self._starting)

    async def _start(self) -> None:
        try:
            self.reader = await self._run(self._indexing.open_reader, self.folder, self._settings)
            self._worker = self._indexing.make_worker(self.folder, self._settings, self._on_worker)
            await self._worker.start()
            await self._worker.update(None)
        except Exception as error:  # noqa: BLE001 - a folder without an index is still served, by the lower tiers
            self._fail("the index could not be opened", error)

    async def _watch(self) -> None:
        try:
            await self._indexing.watch(self.folder, self.changed)
        except Exception as error:  # noqa: BLE001 - without a watcher saves still reach the index
            self._fail("file watching stopped", error)

    def _flush(self) -> None:
        paths = None if self._pending is None else sorted(self._pending)
        self._pending = set()
        self._timer = None
        self._settled.clear()
        self._later(self._send(paths))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, paths: Sequence[str] | None) -> None:
        self.start()
        await self._started()
        try:
            if self._worker is not None:
                await self._worker.update(paths)
        except Exception as error:  # noqa: BLE001 - the next change tries again
            self._fail("the index could not be updated", error)

    def _on_worker(self, status: IndexStatus) -> None:
        self.status = status
        if status.state in (IndexState.READY, IndexState.DEGRADED):
            self._settled.set()
        self._on_status(self.folder, status)

    def _fail(self, what: str, error: Exception) -> None:
        log.warning("%s: %s (%s)", self.folder.key, what, type(error).__name__)
        problems = (*self.status.problems, f"{what} ({type(error).__name__})")
        self._on_worker(replace(self.status, state=IndexState.DEGRADED, problems=problems))
