"""Parse processes: files are prepared side by side, and one that hangs costs its process, not the pass."""

from __future__ import annotations

import gc
import importlib
import itertools
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

import apsw

from haversack_index.database import cursor_of, known_vectors, open_reading
from haversack_index.prepare import EmbedFailure, Prepared, Task, prepare_file, prepare_files
from haversack_index.types import Embedder
from haversack_index.walk import WalkRules

# A file of the largest size that is indexed parses in about 0.2 s; one that takes this long hangs in its grammar.
FILE_SECONDS = 5.0
# Embedding one batch may take this long; beyond it the process is stuck too.
EMBED_SECONDS = 120.0
# Starting a process reads grammars and the token table; on a busy machine that takes seconds.
START_SECONDS = 60.0
# Enough files that messages cost nothing, few enough that the last batches end together.
BATCH_FILES = 16
BATCH_BYTES = 200_000

# Batches a process has before it, so that it never waits for this one, which may be writing or wait for its turn.
AHEAD = 3
# Processes that may fail for no file's fault before the rest is done in this process.
MAX_FAILED = 3
# New objects between two looks for unreachable cycles, of which parsing makes hardly any: at the interpreter's own 700
# a twentieth of the time goes into looking.
GC_THRESHOLD = 50_000

# Elsewhere copies of a process are unsafe (macOS) or unknown (Windows).
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# What the process that is copied has read: nearly all that its copies import.
PRELOADED = ("haversack_index.pool", "haversack_index.reader", "haversack_index.update")

TIMED_OUT = "parse time"
NOT_STARTED = "Parse processes do not start here; files are parsed in one process, without embedding."


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """An embedder by name, so that each process can make its own: `module:function` and its keyword arguments."""

    factory: str = "haversack_index.embed:load_embedder"
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"kind": "static"})

    def load(self) -> Embedder:
        """Whatever the factory raises, this raises."""
        module, _, name = self.factory.partition(":")
        return cast("Embedder", getattr(importlib.import_module(module), name)(**self.arguments))


_Arguments = tuple[Path, WalkRules, Path, EmbedderSpec | None]
"""Folder, rules, database, embedder: what a process needs to know once."""


class _Place:
    """Where a process is, in memory shared with it: a message for each file would wake this one as often."""

    def __init__(self, context: Any) -> None:
        self._values: Any = context.RawArray("d", [0.0, -1.0, time.monotonic()])

    def tell(self, n_done: int, at: int) -> None:
        """Batches done, and the file of the next one: its length while embedding, -1 before the first."""
        # Read in the opposite order: a new file with the time of the one before would seem late.
        self._values[2] = time.monotonic()
        self._values[1] = at
        self._values[0] = n_done

    def read(self) -> tuple[int, int, float]:
        """Batches done, file, and since when, in seconds of the monotonic clock."""
        return int(self._values[0]), int(self._values[1]), float(self._values[2])


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection[Any, Any]
    place: _Place
    batches: deque[list[Task]] = field(default_factory=deque[list[Task]])  # not yet answered
    n_answered: int = 0

    def at(self) -> tuple[int, int]:
        """Which of the batches it works on, and which file of it."""
        n_done, at, _ = self.place.read()
        return n_done - self.n_answered, at

    def deadline(self, file_seconds: float) -> float:
        """When it is stuck, by the monotonic clock."""
        n_done, at, since = self.place.read()
        number = n_done - self.n_answered
        if at < 0 or number >= len(self.batches):
            return since + START_SECONDS
        return since + (file_seconds if at < len(self.batches[number]) else EMBED_SECONDS)


class ParsePool:
    """Processes that prepare files. Used from one thread; `close` when done."""

    def __init__(
        self,
        folder: Path,
        rules: WalkRules,
        database: Path,
        embedder: EmbedderSpec | None = None,
        *,
        n_processes: int = 0,
        file_seconds: float = FILE_SECONDS,
    ) -> None:
        self._arguments = (folder, rules, database, embedder)
        self._folder, self._rules = folder, rules
        # One core is left to the editor; of two, both are used, at low priority, since one alone doubles the wait.
        n_cores = os.cpu_count() or 1
        self._n_processes = n_processes or (max(2, n_cores - 1) if n_cores > 1 else 1)
        self._file_seconds = file_seconds
        self._workers: list[_Worker] = []
        self._n_failed = 0
        self._niceness = 0

    def warm(self) -> None:
        """Start all processes before there is work, so that they read their modules while the caller walks."""
        while len(self._workers) < self._n_processes:
            self._workers.append(self._start())

    def calm(self, niceness: int) -> None:
        """Lower the priority of the processes that run; those started later have that of their caller."""
        self._niceness = niceness
        for worker in self._workers:
            _lower(worker.process.pid, niceness)

    def prepare(self, tasks: Sequence[Task]) -> Generator[Prepared]:
        """Each task's result, in the order they are done."""
        waiting = deque(_batches(tasks))
        try:
            while waiting or any(worker.batches for worker in self._workers):
                if self._n_failed >= MAX_FAILED and waiting:
                    yield from prepare_files(self._folder, self._rules, waiting.popleft())
                    continue
                self._deal(waiting)
                yield from self._collect(waiting)
        finally:
            # A caller that stopped early left files behind, whose results must not be taken for the next pass's.
            for worker in [worker for worker in self._workers if worker.batches]:
                _end(worker)
                self._workers.remove(worker)

    def shrink(self) -> None:
        """Keep one process for the next saved file, let the others and their memory go."""
        for worker in self._workers[1:]:
            _end(worker)
        del self._workers[1:]

    def close(self) -> None:
        for worker in self._workers:
            _end(worker)
        self._workers.clear()

    def _deal(self, waiting: deque[list[Task]]) -> None:
        """Give each process batches up to the limit, the idlest first; start processes while all are busy."""
        while waiting:
            if len(self._workers) < self._n_processes and all(worker.batches for worker in self._workers):
                self._workers.append(self._start())
            number, worker = min(enumerate(self._workers), key=lambda item: len(item[1].batches))
            if len(worker.batches) >= AHEAD:
                return
            # From both ends of the languages: making a query costs a tenth of a second in each process.
            worker.batches.append(waiting.pop() if number % 2 else waiting.popleft())
            with suppress(OSError):  # a dead process shows when its answer is awaited
                worker.connection.send(worker.batches[-1])

    def _start(self) -> _Worker:
        # A forked copy of a process with threads can deadlock. On Linux copies are made of one that has none, but has
        # read all modules: quicker, and they share its memory.
        start_server()
        ours, theirs = multiprocessing.Pipe()
        try:
            process, place = _process(START_METHOD, theirs, self._arguments)
        except OSError:  # such as a temporary folder with a path too long for a socket
            process, place = _process("spawn", theirs, self._arguments)
        theirs.close()
        if self._niceness:
            _lower(process.pid, self._niceness)
        return _Worker(process, cast("Connection[Any, Any]", ours), place)

    def _collect(self, waiting: deque[list[Task]]) -> Iterator[Prepared]:
        busy = [worker for worker in self._workers if worker.batches]
        patience = min(worker.deadline(self._file_seconds) for worker in busy) - time.monotonic()
        # Looked at again after the time of one file: processes go on to their next file without a word.
        patience = min(max(patience, 0.0), self._file_seconds)
        ready = wait([worker.connection for worker in busy], patience)
        for worker in busy:
            if worker.connection in ready:
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError):
                    yield from self._replace(worker, waiting, "the parser ended its process")
                    continue
                worker.batches.popleft()
                worker.n_answered += 1
                yield from cast("list[Prepared]", message)
            elif time.monotonic() >= worker.deadline(self._file_seconds):
                yield from self._replace(worker, waiting, TIMED_OUT)

    def _replace(self, worker: _Worker, waiting: deque[list[Task]], note: str) -> Iterator[Prepared]:
        """End a process that hangs or died; its file is cut by lines, its other files go to others."""
        _end(worker)
        self._workers.remove(worker)
        number, at = worker.at()
        batches = list(worker.batches)
        worker.batches.clear()
        batch = batches.pop(number) if number < len(batches) else []
        waiting.extendleft(reversed(batches))
        if 0 <= at < len(batch):
            guilty = batch.pop(at)
            yield prepare_file(self._folder, self._rules, guilty, lines_only=note)[0]
            if batch:
                waiting.appendleft(batch)
            return
        # It died before the first file or while embedding: no file is to blame, so they are prepared here.
        self._n_failed += 1
        failure = None
        if self._arguments[-1] is not None:
            failure = EmbedFailure("The embedding model ended its process or took too long; vectors are off.", True)
        problem = NOT_STARTED if at < 0 else ""
        for one in prepare_files(self._folder, self._rules, batch):
            yield replace(one, problem=problem or one.problem, failure=failure)


def _batches(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Files by their endings, so that a batch needs few grammars, in the order given otherwise."""
    batch: list[Task] = []
    size = 0
    for task in sorted(tasks, key=lambda task: task.path.rpartition("/")[2].rpartition(".")[2]):
        if batch and (len(batch) >= BATCH_FILES or size + task.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.size
    if batch:
        yield batch


def _end(worker: _Worker) -> None:
    worker.connection.close()
    worker.process.kill()
    worker.process.join(timeout=5)


def _serve(connection: Connection, place: _Place, arguments: _Arguments) -> None:
    """A parse process: batches of tasks in, all results of each out; before each file it tells its place."""
    folder, rules, database, spec = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    sys.stdout = sys.stderr
    die_with_parent()
    embedder, failure = _load(spec)
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    known = _Known(database)
    done: queue.SimpleQueue[list[Prepared]] = queue.SimpleQueue()
    # Sent by a thread: who takes the results may be writing those before, and may be giving out more work.
    threading.Thread(target=_send, args=(connection, done), daemon=True).start()
    for n_done in itertools.count():
        try:
            batch = cast("list[Task]", connection.recv())
        except (EOFError, OSError):
            return
        results = prepare_files(folder, rules, batch, embedder, known, on_file=partial(place.tell, n_done))
        if failure is not None:
            results = [replace(one, failure=failure) for one in results]
        done.put(results)
        place.tell(n_done + 1, -1)


def _send(connection: Connection, done: queue.SimpleQueue[list[Prepared]]) -> None:
    with suppress(OSError):  # nobody listens any more; the end of the work shows it to the other thread too
        while True:
            connection.send(done.get())


def _load(spec: EmbedderSpec | None) -> tuple[Embedder | None, EmbedFailure | None]:
    if spec is None:
        return None, None
    try:
        return spec.load(), None
    except Exception as error:  # noqa: BLE001 - any code; without vectors the text index is still made
        return None, EmbedFailure(str(error), True)


class _Known:
    """Looks vector keys up in the store, so that text that came back with a branch is not embedded again."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._connection: apsw.Connection | None = None

    def __call__(self, keys: Sequence[bytes]) -> set[bytes]:
        try:
            if self._connection is None:
                self._connection, _ = open_reading(self._database)
            return known_vectors(cursor_of(self._connection), keys)
        except apsw.Error:
            self._connection = None
            return set()


def start_server() -> None:
    """Start the process that parse processes are copies of, where there is one; it reads modules meanwhile."""
    if START_METHOD == "forkserver":
        multiprocessing.set_forkserver_preload(list(PRELOADED))
        with suppress(OSError):  # told by the first process that is to be started
            ensure_running()


def _process(method: str, connection: object, arguments: _Arguments) -> tuple[BaseProcess, _Place]:
    context = cast("Any", multiprocessing.get_context(method))
    place = _Place(context)
    process: BaseProcess = context.Process(target=_serve, args=(connection, place, arguments), daemon=True)
    process.start()
    return process, place


def _lower(pid: int | None, niceness: int) -> None:
    if pid is not None and hasattr(os, "setpriority"):
        with suppress(OSError):  # it just ended
            os.setpriority(os.PRIO_PROCESS, pid, niceness)


def die_with_parent() -> None:
    """On Linux, have the kernel end this process with its parent, even inside a grammar that never returns."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - only where it is used

    with suppress(OSError, AttributeError):
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
