"""One workspace folder's index while a session is open: a reader for questions and a worker process for changes.

A question never waits for the worker: until the index is there, and while it is being built, the reader answers from
what it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from haversack.config import walk_rules
from haversack.index_view import Index
from haversack.policy.confinement import embeds_elsewhere
from haversack.types import Folder, Settings
from haversack_index.client import WorkerEvent
from haversack_index.types import IndexState, IndexStatus

log = logging.getLogger("haversack.indexing")

# Seconds of quiet after a change before the worker hears of it: a save-all or a branch switch comes as one batch, and
# a single save is still in the index before its author has typed a question.
DEBOUNCE = 0.2
# A batch is sent after this long even when changes keep coming, so that a busy build does not starve the index.
LONGEST_WAIT = 2.0
# More changed paths than this are a new state of the tree: one full pass is cheaper than asking for each.
MAX_PATHS = 5_000
# Seconds between two counts of a growing index: counting a large one takes tens of milliseconds of its disk.
COUNT_INTERVAL = 2.0
# Problems of one pass that a status shows; the first ones tell what is wrong.
MAX_PROBLEMS = 10


class Reader(Index, Protocol):
    """What a session needs of `haversack_index.reader.IndexReader`."""

    def why_skipped(self, path: str) -> str: ...
    def close(self) -> None: ...


class Worker(Protocol):
    """What a session needs of a worker process. All return early: the work itself is told in events."""

    async def start(self) -> None: ...
    async def update(self, paths: Sequence[str] | None) -> None: ...
    async def rebuild(self) -> None: ...
    async def configure(self, settings: Settings) -> None: ...
    async def stop(self) -> None: ...


OnChange = Callable[[Iterable[str] | None], None]
"""Hears of changed paths inside a folder; None when any may have changed."""

OnProblem = Callable[[str], None]


class Indexing(Protocol):
    """How to open a folder's index. `haversack.local_index` is the real one; tests bring their own."""

    def open_reader(self, folder: Folder, settings: Settings) -> Reader: ...
    def make_worker(self, folder: Folder, settings: Settings, on_event: Callable[[WorkerEvent], None]) -> Worker: ...
    async def watch(self, folder: Folder, settings: Settings, on_change: OnChange, on_problem: OnProblem) -> None: ...


Run = Callable[..., Awaitable[Any]]
"""Runs a blocking function with its arguments on a thread."""

OnStatus = Callable[[Folder, IndexStatus], None]


class FolderIndex:
    """The index of one folder. Everything here runs on the event loop; nothing here waits for the disk on it."""

    def __init__(self, folder: Folder, indexing: Indexing, settings: Settings, run: Run, on_status: OnStatus) -> None:
        self.folder = folder
        self.reader: Reader | None = None
        self.reader_settings = settings  # those that the reader was opened with
        self.status = IndexStatus(folder.root, IndexState.SCANNING, 0, 0, 0, 0, 0, 0, 0)
        self._indexing = indexing
        self._settings = settings
        self._run = run
        self._on_status = on_status
        self._worker: Worker | None = None
        self._settled = asyncio.Event()
        self._asked = 0  # commands that a waiting caller may have sent
        self._opened = asyncio.Event()
        self._counted = 0.0
        self._problems: list[str] = []  # of the pass under way
        self._lasting: list[str] = []  # of the session
        self._retired: list[Reader] = []
        self._pending: set[str] | None = set()  # None: everything
        self._first_pending = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._later_tasks: set[asyncio.Task[None]] = set()

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
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._first_pending = loop.time()
        else:
            self._timer.cancel()
        wait = min(DEBOUNCE, max(0.0, self._first_pending + LONGEST_WAIT - loop.time()))
        self._timer = loop.call_later(wait, self._flush)

    def configure(self, settings: Settings) -> None:
        """Take new settings; a running worker hears of them, one that starts later starts with them."""
        old, self._settings = self._settings, settings
        if self._worker is not None and _index_settings(old) != _index_settings(settings):
            self._later(self._reconfigure())

    async def rebuild(self) -> None:
        """Forget the index and build it again; returns when the work has been handed over."""
        await self._started()
        self._unsettle()
        if self._worker is not None:
            await self._worker.rebuild()
            self._tell(replace(self.status, state=IndexState.SCANNING, done=0, total=0))

    async def wait_opened(self) -> None:
        """Wait until the reader is there, or is known to stay away. What it can answer is another question."""
        self.start()
        await self._opened.wait()

    async def wait_settled(self) -> IndexStatus:
        """The status once the index is up to date, or known to stay incomplete."""
        await self._started()
        await self._settled.wait()
        return self.status

    async def stop(self) -> None:
        """End the worker and the watcher; the reader is closed."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._starting, self._watching, *self._later_tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._worker is not None:
            await self._worker.stop()
        for reader in (self.reader, *self._retired):
            if reader is not None:
                reader.close()
        self.reader = None
        self._opened.set()
        self._settled.set()

    async def _started(self) -> None:
        self.start()
        if self._starting is not None:
            # Not awaited itself: who waits is not cancelled when the folder goes, and giving up does not end the start.
            await asyncio.wait({self._starting})

    async def _start(self) -> None:
        try:
            # Kept before it is started: whatever happens meanwhile, `stop` finds it. Its process reads its modules
            # while the reader is opened here.
            self._worker = self._indexing.make_worker(self.folder, self._settings, self._on_event)
            await self._worker.start()
            settings = self._settings
            self.reader = await self._run(self._indexing.open_reader, self.folder, settings)
            self.reader_settings = settings
            self._opened.set()
            if _index_settings(settings) != _index_settings(self._settings):
                self._later(self._reconfigure())
            await self._refresh(final=False)
        except Exception as error:  # noqa: BLE001 - a folder without an index is still served, by the lower tiers
            self._fail("The index could not be opened", error)

    async def _watch(self) -> None:
        try:
            await self._indexing.watch(self.folder, self._settings, self.changed, self._note)
        except Exception as error:  # noqa: BLE001 - without a watcher saves still reach the index
            self._note(_words("Files are no longer watched", error))

    async def _reconfigure(self) -> None:
        try:
            settings = self._settings
            reader = await self._run(self._indexing.open_reader, self.folder, settings)
            if self.reader is not None:
                self._retired.append(self.reader)  # questions under way still read from it
            self.reader, self.reader_settings = reader, settings
            if self._worker is not None:
                await self._worker.configure(self._settings)
            if self._watching is not None:  # the rules say which folders are watched
                self._watching.cancel()
                self._watching = asyncio.create_task(self._watch())
        except Exception as error:  # noqa: BLE001 - the old reader goes on
            self._fail("New settings could not be used", error)

    def _flush(self) -> None:
        paths = None if self._pending is None else sorted(self._pending)
        self._pending = set()
        self._timer = None
        self._later(self._send(paths))

    async def _send(self, paths: Sequence[str] | None) -> None:
        await self._started()
        try:
            if self._worker is not None:
                self._unsettle()
                await self._worker.update(paths)
        except Exception as error:  # noqa: BLE001 - the next change tries again
            self._fail("The index could not be updated", error)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._later_tasks.add(task)
        task.add_done_callback(self._later_tasks.discard)

    def _on_event(self, event: WorkerEvent) -> None:
        match event.kind:
            case "scanning":
                self._problems = []
                self._tell(replace(self.status, state=IndexState.SCANNING, done=0, total=0))
            case "progress":
                self._tell(replace(self.status, state=IndexState.INDEXING, done=event.done, total=event.total))
            case "skipped":
                self._tell(replace(self.status, skipped=dict(event.counts)))
            case "generation":
                self._tell(replace(self.status, generation=event.generation))
                now = asyncio.get_running_loop().time()
                if now - self._counted > COUNT_INTERVAL:
                    self._counted = now
                    self._later(self._refresh(final=False))
            case "problem":
                if len(self._problems) < MAX_PROBLEMS:
                    self._problems.append(event.message)
                self._tell(replace(self.status, problems=self._all_problems()))
            case "ready":
                self._later(self._refresh(final=not event.behind))
            case "stopped":
                self._tell(replace(self.status, state=IndexState.DEGRADED))
                self._settled.set()
            case _:
                log.info("%s: the indexer tells of %r", self.folder.key, event.kind)

    def _unsettle(self) -> None:
        self._settled.clear()
        self._asked += 1

    async def _refresh(self, *, final: bool) -> None:
        """Take counts from the index itself; `final` at the end of a pass, when its state holds as well.

        Work asked for meanwhile makes it a pass among others: who waits then waits for the later one.
        """
        asked = self._asked
        await self._opened.wait()
        if self.reader is None:
            if final:
                self._tell(replace(self.status, state=IndexState.DEGRADED))
                self._settled.set()
            return
        status: IndexStatus = await self._run(self.reader.status)
        if not final or asked != self._asked:
            now = self.status
            self._tell(replace(status, state=now.state, done=now.done, total=now.total, problems=self._all_problems()))
            return
        problems = self._all_problems(*status.problems)
        state = IndexState.DEGRADED if problems else IndexState.READY
        self._tell(replace(status, state=state, problems=problems))
        self._settled.set()

    def _tell(self, status: IndexStatus) -> None:
        self.status = status
        self._on_status(self.folder, status)

    def _fail(self, what: str, error: Exception) -> None:
        """Trouble that ends the work under way: nobody should wait for more."""
        self._note(_words(what, error))
        self._tell(replace(self.status, state=IndexState.DEGRADED))
        self._opened.set()
        self._settled.set()

    def _note(self, problem: str) -> None:
        log.warning("%s: %s", self.folder.key, problem)
        self._lasting.append(problem)
        self._tell(replace(self.status, problems=self._all_problems()))

    def _all_problems(self, *found: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._lasting, *found, *self._problems)))[:MAX_PROBLEMS]


def _index_settings(settings: Settings) -> tuple[object, ...]:
    """The settings that decide what is in an index; no other is worth a pass over the folder."""
    return (
        walk_rules(settings),
        settings.embedder,
        settings.embedder_endpoint,
        settings.embedder_model,
        settings.embedder_key_variable,
        withheld_patterns(settings),
    )


def withheld_patterns(settings: Settings) -> list[str]:
    """Privacy patterns of files whose text an embedding service must not see: none for one that runs right here."""
    if not embeds_elsewhere(settings):
        return []
    return [*settings.restricted_paths, *settings.remote_blocked_paths]


def _words(what: str, error: Exception) -> str:
    return f"{what} ({type(error).__name__})."
