"""Keeps records while questions go on: one thread writes what was answered, after it was answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from uuid import uuid4

from haversack.record_form import Question, Record, faults, folder_names, is_served, make_record
from haversack.records import Keep, Records, choose
from haversack.types import Bundle, Folder, HaversackError, Problem, Reason, Request, Snapshot
from haversack.workspace import Workspace

T = TypeVar("T")

# Seconds that a session's end waits for records that are being written.
LAST_WRITES = 2.0


class State(StrEnum):
    """What became of the text that an entry was read from."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"
    NO_FILE = "no file"  # a memory, a diff: there is nothing to compare it with
    WITHHELD = "withheld"
    NOT_OPEN = "folder not open"


@dataclass(frozen=True, slots=True)
class EntryState:
    entry: Mapping[str, Any]
    state: State


@dataclass(frozen=True, slots=True)
class Verification:
    """`faults` is empty when the record is as it was written; `entries` are those that were served."""

    record: Record
    faults: tuple[str, ...]
    entries: tuple[EntryState, ...]


class Recorder:
    """Writes, lists and checks the records of one session. Its methods run on the event loop."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="haversack-records")
        self._waiting: deque[tuple[str, str, Question]] = deque()
        self._failed: deque[Problem] = deque(maxlen=1)  # the last one says it all

    def keep(self, request: Request, snapshot: Snapshot, bundle: Bundle) -> str:
        """The id under which this answer's record is about to be written; "" when none is kept."""
        folder = _home(request, snapshot)
        if folder is None:
            return ""
        id = uuid4().hex if snapshot.settings.records_keep_days else ""
        question = Question(request, snapshot, bundle)
        self._waiting.append((folder.root, id, question))
        # What asked for the answer ends its turn, and what waits for that sends it in the next one; only then does the
        # writer get to compete with them for the processor.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._submit)
        return id

    def take_problems(self) -> tuple[Problem, ...]:
        """What went wrong with records since the last answer."""
        return (*self._records.take_problems(), *(self._failed.popleft() for _ in range(len(self._failed))))

    async def list(self, snapshot: Snapshot, limit: int, folder: str = "") -> tuple[Record, ...]:
        """The newest records of one folder, or of all that are open."""
        lists = await self._each(snapshot, folder, lambda root, keep: self._records.list(root, keep, limit))
        return tuple(sorted(lists, key=lambda record: (-record.time, record.id))[:limit])

    async def get(self, snapshot: Snapshot, prefix: str, folder: str = "") -> Record:
        """The record whose id begins with `prefix`. Raises `record_not_found` or `record_ambiguous`."""
        wanted = prefix.strip().lower()
        if not wanted:
            raise HaversackError("record_not_found", "No record is named.", "`haversack log` lists the records.")
        found = await self._each(snapshot, folder, lambda root, keep: self._records.starting_with(root, keep, wanted))
        return choose(found, wanted)

    async def verify(self, workspace: Workspace, prefix: str, folder: str = "") -> Verification:
        """Whether a record is as it was written, and what became of the files it names."""
        record = await self.get(workspace.snapshot, prefix, folder)
        found = faults(record)
        entries = await workspace.run(self._entries, record, workspace) if not found else ()
        return Verification(record, found, entries)

    async def close(self) -> None:
        """Wait a little for what is still to be written, then leave it."""
        self._submit()
        done = asyncio.get_running_loop().run_in_executor(self._thread, lambda: None)
        await asyncio.wait((done,), timeout=LAST_WRITES)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _submit(self) -> None:
        while self._waiting:
            self._thread.submit(self._write, *self._waiting.popleft())

    def _write(self, root: str, id: str, question: Question) -> None:
        try:
            keep = _keep(question.snapshot)
            if id:
                self._records.add(root, make_record(id, question, self._records.key(root)), keep)
            else:
                self._records.prune(root, keep)
        except HaversackError as error:
            self._failed.append(Problem("records", error.code, error.message, error.remedy))

    async def _each(self, snapshot: Snapshot, folder: str, read: Callable[[str, Keep], Sequence[T]]) -> tuple[T, ...]:
        """What `read` gives for every folder, on the writer's thread: what was answered before is written by then."""
        keep = _keep(snapshot)
        chosen = [each for each in snapshot.folders if folder in ("", each.key)]

        def work() -> tuple[T, ...]:
            return tuple(found for each in chosen for found in read(each.root, keep))

        self._submit()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _entries(self, record: Record, workspace: Workspace) -> tuple[EntryState, ...]:
        content = record.content
        names: dict[str, str] = {}
        for folder in workspace.snapshot.folders:
            key = self._records.known_key(folder.root)
            names |= folder_names(content, workspace.snapshot.folders, key) if key else {}
        served = (entry for entry in content["entries"] if is_served(entry))
        return tuple(EntryState(entry, _state(entry, names, workspace)) for entry in served)


def _keep(snapshot: Snapshot) -> Keep:
    return Keep(snapshot.now, snapshot.settings.records_keep_days)


def _home(request: Request, snapshot: Snapshot) -> Folder | None:
    """The folder whose database has the record: the question's, else the first one."""
    named = [folder for folder in snapshot.folders if folder.key == request.folder]
    return next(iter((*named, *snapshot.folders)), None)


def _state(entry: Mapping[str, Any], names: Mapping[str, str], workspace: Workspace) -> State:
    if entry["withheld"]:
        return State.WITHHELD
    if entry["path"] is None or entry["lines"] is None:
        return State.NO_FILE
    if entry["folder"] not in names:
        return State.NOT_OPEN
    folder, path = names[entry["folder"]], entry["path"]
    if workspace.withholds(folder, path) in (Reason.PRIVILEGED, Reason.STRATEGY):
        return State.WITHHELD
    file = workspace.read(folder, path)
    if file is None:
        return State.GONE
    return State.UNCHANGED if file.content_hash == entry["content_hash"] else State.CHANGED
