"""Changes of a workspace folder as they happen, through the same verdicts as the walk.

On Linux each folder that the walk enters is watched by itself: watching a tree whole would follow links (out of the
folder, and in circles) and spend a watch on every folder of every dependency. Elsewhere the system watches trees.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

from haversack_index.ignore import GIT_FILE, TOOL_FILE
from haversack_index.types import SkipReason
from haversack_index.walk import Checker, Found, WalkRules

Changed = Callable[[set[str] | None], None]
"""Called with changed paths, or with None when anything may have changed and the folder must be walked again."""

# A save is one event or five, a checkout thousands: wait for this much quiet, but never hold a change back longer
# than the second figure. Milliseconds.
_QUIET_MS = 100
_LONGEST_MS = 1000

# Without a working watcher a full walk is the only way to see changes; it costs seconds on a large tree.
POLL_SECONDS = 60.0

# A folder may vanish between being listed and being watched; more often than this in a row, something else is wrong.
_ATTEMPTS = 5

# Reasons that lie in a file's state and not in its name or the rules: the file may have been indexed before.
_MAY_HAVE_BEEN_INDEXED = frozenset(
    {SkipReason.GONE, SkipReason.TOO_LARGE, SkipReason.SYMLINK, SkipReason.SPECIAL, SkipReason.UNREADABLE}
)

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sorted:
    """What a batch of raw changes comes to."""

    changed: set[str] = field(default_factory=set[str])
    rules_changed: bool = False
    new_folders: set[str] = field(default_factory=set[str])  # "" or ending in `/`, to be listed and watched
    gone: set[str] = field(default_factory=set[str])


async def watch(
    root: Path,
    rules: WalkRules,
    on_change: Changed,
    stop: asyncio.Event,
    on_problem: Callable[[str], None] = _LOG.warning,
    *,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Report changes under `root` until `stop` is set.

    `on_change` gets relative paths of files that the walk would find, or might have found before; a path that is gone
    may have been a folder with everything under it. It gets None after a change of a rule file. When the system
    refuses to watch (no watches left), `on_problem` is called once and `on_change(None)` every `poll_seconds`.
    """
    top = await asyncio.to_thread(os.path.realpath, root)
    async with aclosing(_batches(top, rules, stop)) as batches:
        while True:
            try:
                batch = await anext(batches)
            except StopAsyncIteration:
                return
            except (OSError, RuntimeError) as error:  # the latter is what the watcher's native part raises
                on_problem(f"watching {root} failed ({error}); looking for changes every {poll_seconds:g} s instead")
                break
            on_change(batch)
    await _poll(on_change, stop, poll_seconds)


async def _poll(on_change: Changed, stop: asyncio.Event, seconds: float) -> None:
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), seconds)
        except TimeoutError:
            on_change(None)


async def _batches(top: str, rules: WalkRules, stop: asyncio.Event) -> AsyncGenerator[set[str] | None]:
    """Sorted-out changes, batch by batch; the watched folders follow the tree."""
    whole_tree = sys.platform != "linux"
    folders = {""} if whole_tree else await asyncio.to_thread(_entered, top, rules, {""})
    async with _Feed(top, whole_tree, stop) as feed:
        folders = await _start(feed, top, rules, folders)
        while (raw := await feed.next()) is not None:
            batch = await asyncio.to_thread(_sort_out, top, rules, raw)
            if batch.rules_changed:
                if not whole_tree:
                    folders = await _start(feed, top, rules, await asyncio.to_thread(_entered, top, rules, {""}))
                yield None
                continue
            folders = {folder for folder in folders if not _is_under(folder, batch.gone)}
            new: set[str] = batch.new_folders
            while new:
                # Watch first and list afterwards, so that no file can appear between the two unseen.
                if not whole_tree:
                    folders |= new
                    folders = await _start(feed, top, rules, folders)
                files, inner = await asyncio.to_thread(_list_folders, top, rules, new)
                batch.changed |= files
                new = set[str]() if whole_tree else inner - folders
            if batch.changed:
                yield batch.changed


async def _start(feed: _Feed, top: str, rules: WalkRules, folders: set[str]) -> set[str]:
    """Watch exactly `folders`; those that vanished meanwhile are left out. Returns what is watched."""
    for attempt in range(_ATTEMPTS):
        try:
            await feed.watch(folders)
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1:
                raise
            folders = await asyncio.to_thread(_existing, top, folders)
        else:
            break
    return folders


class _Feed:
    """Raw changes from one watcher at a time; a new one is at work before the old one ends, so none is lost."""

    def __init__(self, top: str, whole_tree: bool, stop: asyncio.Event) -> None:
        self._top = top
        self._whole_tree = whole_tree
        self._stop = stop
        self._queue: asyncio.Queue[set[str]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    async def __aenter__(self) -> _Feed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._finish(self._task, self._end)

    async def watch(self, folders: Iterable[str]) -> None:
        """Replace the watcher. Raises what the system says against watching these folders."""
        paths = self._paths(folders)
        end = asyncio.Event()
        task = asyncio.create_task(self._run(paths, end))
        # The watcher is set up in the task's first step, before it first waits.
        await asyncio.sleep(0)
        if task.done():
            task.result()
        old_task, old_end = self._task, self._end
        self._task, self._end = task, end
        await self._finish(old_task, old_end)

    def _paths(self, folders: Iterable[str]) -> list[str]:
        paths = [os.path.join(self._top, folder) for folder in sorted(folders)]
        rules_of_repository = os.path.join(self._top, ".git", "info")
        if not self._whole_tree and os.path.isdir(rules_of_repository):
            paths.append(rules_of_repository)
        return paths

    async def next(self) -> set[str] | None:
        """The absolute paths of the next batch; None when stopped. Raises what ended the watcher otherwise."""
        assert self._task is not None
        getting = asyncio.create_task(self._queue.get())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({getting, stopping, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if self._stop.is_set():
                return None
            if getting.done():
                return getting.result()
            self._task.result()
            raise OSError("the watcher ended")
        finally:
            getting.cancel()
            stopping.cancel()

    async def _run(self, paths: list[str], end: asyncio.Event) -> None:
        changes = awatch(
            *paths,
            watch_filter=None,
            debounce=_LONGEST_MS,
            step=_QUIET_MS,
            stop_event=end,
            recursive=self._whole_tree,
            force_polling=False,
        )
        async for batch in changes:
            self._queue.put_nowait({path for _, path in batch})

    async def _finish(self, task: asyncio.Task[None] | None, end: asyncio.Event) -> None:
        end.set()
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)


def _entered(top: str, rules: WalkRules, below: set[str]) -> set[str]:
    return _list_folders(top, rules, below)[1] | {""}


def _existing(top: str, folders: set[str]) -> set[str]:
    return {folder for folder in folders if os.path.isdir(os.path.join(top, folder))}


def _list_folders(top: str, rules: WalkRules, folders: set[str]) -> tuple[set[str], set[str]]:
    """The files to index under some folders, and the folders that the walk enters there, themselves included."""
    checker = Checker(Path(top), rules)
    files: set[str] = set()
    inner: set[str] = set()
    for folder in folders:
        for row in checker.under(folder):
            if isinstance(row, Found):
                (inner if row.path.endswith("/") or not row.path else files).add(row.path)
    return files, inner


def _sort_out(top: str, rules: WalkRules, raw: set[str]) -> _Sorted:
    """Which of the raw changes matter, by the verdicts of the walk."""
    batch = _Sorted()
    checker = Checker(Path(top), rules)
    exclude = os.path.join(top, ".git", "info", "exclude")
    for absolute in raw:
        if absolute == exclude or os.path.basename(absolute) in (GIT_FILE, TOOL_FILE):
            batch.rules_changed = True
            continue
        path = os.path.relpath(absolute, top).replace(os.sep, "/")
        if path == ".":
            continue
        verdict = checker.check(path)
        if isinstance(verdict, Found):
            if verdict.path.endswith("/"):
                batch.new_folders.add(verdict.path)
            else:
                batch.changed.add(path)
        elif verdict.reason in _MAY_HAVE_BEEN_INDEXED:
            batch.changed.add(path)
            if verdict.reason is SkipReason.GONE:
                batch.gone.add(path + "/")
    return batch


def _is_under(folder: str, gone: set[str]) -> bool:
    """Whether `folder` or one above it is among `gone`."""
    return any(folder[: i + 1] in gone for i, character in enumerate(folder) if character == "/")
