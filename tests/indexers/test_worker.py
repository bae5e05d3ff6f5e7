"""The indexing process and the client that keeps it: protocol, hangs, crashes, kills, a service that is down."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import psutil
import pytest
from indexing import HashEmbedder, dump, index, module, serve_badly, serve_not_at_all, write_tree

from haversack_index import pool as pool_module
from haversack_index.client import WorkerClient, WorkerEvent
from haversack_index.database import cursor_of, database_path, open_reading
from haversack_index.embed import load_embedder
from haversack_index.pool import EmbedderSpec, ParsePool
from haversack_index.prepare import Prepared, Task
from haversack_index.reader import IndexReader
from haversack_index.store import Store
from haversack_index.types import IndexState, Query, Tier
from haversack_index.walk import WalkRules
from haversack_index.worker import EAGER_FILES, EAGER_SECONDS, NICENESS, Worker, embedder_spec

pytestmark = pytest.mark.slow  # each test starts processes

TESTS = Path(__file__).parent.parent
# How often the process is killed; more by the environment, and in `benchmarks/kill.py`.
KILLS = int(os.environ.get("HAVERSACK_KILLS", "3"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "w", {f"p{i % 3}/f{i}.py": module(f"topic{i}") for i in range(9)})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "c"


@pytest.fixture(autouse=True)
def _import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find the embedders of the tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))


class Process:
    """A worker spoken to directly, line by line."""

    def __init__(self, folder: Path, cache: Path, *options: str) -> None:
        command = [sys.executable, "-m", "haversack_index.worker", "--folder", str(folder), "--cache-dir", str(cache)]
        self.process = subprocess.Popen(
            [*command, "--processes", "1", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.events: list[dict[str, Any]] = []

    def send(self, line: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        self.process.stdin.flush()

    def until(self, kind: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == kind:
                return self.events[-1]
        raise AssertionError(f"ended without {kind}: {self.events}")

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(10)


@pytest.fixture
def start(folder: Path, cache: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def make(*options: str) -> Process:
        started.append(Process(folder, cache, *options))
        return started[-1]

    yield make
    for one in started:
        one.process.kill()
        one.process.wait()


def test_a_worker_indexes_updates_and_ends_with_its_parent(
    start: Callable[..., Process], folder: Path, cache: Path
) -> None:
    """One process through its life: first pass, one saved file, nonsense, a rebuild, and the end of stdin."""
    worker = start("--embedder", json.dumps({"factory": "indexing:hash_embedder", "arguments": {"kind": "static"}}))
    worker.send({"command": "update", "paths": None})
    assert worker.until("ready")["state"] == "ready"
    kinds = [event["event"] for event in worker.events]
    assert kinds[0] == "scanning"
    progress = [event for event in worker.events if event["event"] == "progress"]
    assert progress[-1]["done"] == progress[-1]["total"] == 9
    assert {"generation", "skipped"} <= set(kinds)
    assert psutil.Process(worker.process.pid).nice() == 10
    (folder / "p0/f0.py").write_text(module("walrus"))
    worker.send("this is not JSON")
    worker.send("[]")
    worker.send({"command": "dance"})
    worker.send({"command": "update", "paths": ["p0/f0.py"]})
    worker.until("ready")
    assert [event["message"] for event in worker.events if event["event"] == "problem"][2].endswith("'dance'.")
    reader = IndexReader(folder, cache, HashEmbedder())
    assert reader.search(Query("walrus")).files[0].path == "p0/f0.py"
    assert reader.search(Query("walrus")).tier is Tier.HYBRID
    before = dump(folder, cache)
    worker.send({"command": "rebuild"})
    worker.until("ready")
    assert dump(folder, cache) == before
    assert reader.status().state is IndexState.READY
    children = psutil.Process(worker.process.pid).children(recursive=True)
    assert children
    assert worker.end() == 0
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    reader.close()


def test_a_large_or_long_first_pass_gives_way(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first seconds of a small pass have the priority of a command somebody typed; it is lowered once."""
    lowered: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "setpriority", lambda *values: lowered.append(values))
    large, long = (Worker(folder, cache, io.StringIO()) for _ in range(2))
    large._progress("indexing", 0, EAGER_FILES)
    assert lowered == []
    large._progress("indexing", 0, EAGER_FILES + 1)
    large._progress("indexing", 1, EAGER_FILES + 1)
    assert lowered == [(os.PRIO_PROCESS, 0, NICENESS)]
    long._started -= EAGER_SECONDS
    long._progress("scanning", 0, 0)
    assert len(lowered) == 2


def test_prints_never_reach_the_protocol(start: Callable[..., Process]) -> None:
    """Bug B88: what a plug-in prints, in Python or below, at import or at work, goes to stderr."""
    worker = start("--embedder", json.dumps({"factory": "indexing:printing_embedder", "arguments": {"kind": "static"}}))
    # The factory takes no arguments: the worker says so in words and indexes without vectors.
    worker.send({"command": "update", "paths": None})
    worker.until("ready")
    worker.send({"command": "configure", "embedder": {"factory": "indexing:printing_embedder", "arguments": {}}})
    worker.until("ready")
    assert worker.events[-1]["state"] == "ready"


def test_vectors_arrive_by_themselves_after_a_service_comes_back(
    start: Callable[..., Process], folder: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug B84: words at once, the cause in the status, vectors within seconds of the service's return."""
    down = tmp_path / "down"
    down.touch()
    monkeypatch.setenv("HASH_EMBEDDER_DOWN", str(down))
    worker = start("--embedder", json.dumps({"factory": "indexing:hash_embedder", "arguments": {"kind": "remote"}}))
    worker.send({"command": "update", "paths": None})
    worker.until("ready")
    reader = IndexReader(folder, cache, HashEmbedder())
    assert reader.search(Query("topic3")).tier is Tier.KEYWORD
    worker.until("problem")
    assert "refused the connection" in worker.events[-1]["message"]
    assert reader.status().problems == (worker.events[-1]["message"],)
    down.unlink()
    worker.until("ready")
    status = reader.status()
    assert (status.n_vectors, status.state) == (status.n_chunks, IndexState.READY)
    assert reader.search(Query("topic3")).tier is Tier.HYBRID
    reader.close()


def test_a_hanging_model_keeps_no_orphan(start: Callable[..., Process], folder: Path, cache: Path) -> None:
    """Words are there at once, and the process ends with its parent though its model never comes back."""
    worker = start("--embedder", json.dumps({"factory": "indexing:hanging_embedder", "arguments": {"kind": "remote"}}))
    worker.send({"command": "update", "paths": None})
    worker.until("ready")
    assert IndexReader(folder, cache).search(Query("topic3")).files[0].path == "p0/f3.py"
    worker.end()


def test_a_worker_survives_a_cache_folder_it_cannot_use(folder: Path, tmp_path: Path) -> None:
    """Bug B87: no place to write is a problem in words; the process stays and tries again when asked."""
    (tmp_path / "file").write_text("in the way")
    worker = Process(folder, tmp_path / "file" / "cache")
    worker.send({"command": "update", "paths": None})
    assert "cannot be written" in worker.until("problem")["message"]
    assert worker.until("ready")["state"] != "ready"  # the pass is over, without an index
    (tmp_path / "file").unlink()
    worker.send({"command": "update", "paths": None})
    assert worker.until("ready")["state"] == "ready"
    assert worker.end() == 0


def test_two_workers_on_one_folder_both_get_there(start: Callable[..., Process], folder: Path, cache: Path) -> None:
    """Two editors on one folder: both become ready, and the index is one sound index."""
    write_tree(folder, {f"more/f{i}.py": module(f"more{i}") for i in range(60)})
    workers = [start(), start()]
    for worker in workers:
        worker.send({"command": "update", "paths": None})
    for worker in workers:
        assert worker.until("ready")["files"] == 69
        assert not [event for event in worker.events if event["event"] == "problem"]
    assert dump(folder, cache)["problems"] == []
    assert dump(folder, cache)["files"] == _fresh(folder, cache)["files"]


def test_killed_at_any_moment_the_index_is_whole_and_is_finished(
    start: Callable[..., Process], folder: Path, cache: Path
) -> None:
    """Bug B24 and promise 6: after kill -9 the database is consistent, and the next run does the rest."""
    write_tree(folder, {f"k{i % 9}/f{i}.py": module(f"kill{i}", 4) for i in range(100)})
    chance = random.Random(7)
    for _ in range(KILLS):
        worker = start()
        worker.send({"command": "update", "paths": None})
        worker.until("progress")
        time.sleep(chance.uniform(0.0, 0.6))
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        found = dump(folder, cache)
        assert found["problems"] == []
        with_chunks = {row[0] for row in found["chunks"]}
        assert {row[0] for row in found["files"]} == with_chunks
    worker = start()
    worker.send({"command": "update", "paths": None})
    worker.until("ready")
    assert dump(folder, cache) == _fresh(folder, cache)


def _fresh(folder: Path, cache: Path) -> dict[str, list[tuple[Any, ...]]]:
    index(folder, cache.with_name("fresh"))
    return dump(folder, cache.with_name("fresh"))


# --- parse processes --------------------------------------------------------------------------------------------


def test_a_hanging_file_costs_its_process_and_not_the_pass(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is cut by lines with a note, every other file is parsed, and progress reaches the total."""
    write_tree(folder, {"p1/hang.py": "HANG = 1\n", "p2/die.py": "DIE = 1\n"})
    monkeypatch.setattr(pool_module, "_serve", serve_badly)
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), n_processes=1, file_seconds=1.5)
    seen: list[tuple[str, int, int]] = []
    result = index(folder, cache, prepare_all=pool.prepare, on_progress=lambda *now: seen.append(now))
    pool.close()
    assert result.n_written == 11
    assert seen[-1] == ("indexing", 11, 11)
    connection, _ = open_reading(database_path(folder, cache))
    notes = dict(cursor_of(connection).execute("SELECT path, note FROM files WHERE note<>''").fetchall())
    connection.close()
    assert notes == {"p1/hang.py": "parse time", "p2/die.py": "the parser ended its process"}
    reader = IndexReader(folder, cache)
    assert reader.search(Query("HANG")).files[0].path == "p1/hang.py"
    assert reader.definitions(["topic4_step_1"])


@pytest.mark.parametrize("method", [pool_module.START_METHOD, "spawn"])
def test_batches_ahead_of_a_bad_file_are_not_lost(
    folder: Path, cache: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process had before it when it died goes to the next one, and no file but the bad one is blamed."""
    write_tree(folder, {"a/die.py": "DIE = 1\n"})
    index(folder, cache)
    monkeypatch.setattr(pool_module, "_serve", serve_badly)
    monkeypatch.setattr(pool_module, "START_METHOD", method)
    monkeypatch.setattr(pool_module, "BATCH_FILES", 2)
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), n_processes=1)
    tasks = [Task("a/die.py", 8), *(Task(f"p{i % 3}/f{i}.py", 80) for i in range(9))]
    results = list(pool.prepare(tasks))
    pool.close()
    assert sorted(result.path for result in results) == sorted(task.path for task in tasks)
    notes = {result.path: result.rows.note for result in results if result.rows is not None and result.rows.note}
    assert notes == {"a/die.py": "the parser ended its process"}
    assert [result.path for result in results if result.problem] == []


def test_processes_that_do_not_start_leave_one_that_works(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is blamed for the machine: all are parsed in full, in this process, and the cause is told."""
    monkeypatch.setattr(pool_module, "_serve", serve_not_at_all)
    monkeypatch.setattr(pool_module, "BATCH_FILES", 2)
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), n_processes=1)
    result = index(folder, cache, prepare_all=pool.prepare)
    pool.close()
    assert result.problems == [pool_module.NOT_STARTED]
    assert dump(folder, cache) == _fresh(folder, cache)


def test_a_pool_gives_every_file_once(folder: Path, cache: Path) -> None:
    """All tasks come back, each once, whatever the number of processes; a pool is used again after shrinking."""
    index(folder, cache)
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), n_processes=2)
    tasks = [Task(f"p{i % 3}/f{i}.py", 80_000) for i in range(9)] + [Task("gone.py", 1)]
    for _ in range(2):
        results: list[Prepared] = list(pool.prepare(tasks))
        assert sorted(result.path for result in results) == sorted(task.path for task in tasks)
        pool.shrink()
    assert list(pool.prepare([])) == []
    pool.close()


def test_a_pool_forgets_what_nobody_waited_for(folder: Path, cache: Path) -> None:
    """After a pass that stopped early, the next one gets its own results only."""
    index(folder, cache)
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), n_processes=2)
    first = pool.prepare([Task(f"p{i % 3}/f{i}.py", 300_000) for i in range(9)])
    next(first)
    first.close()
    assert [result.path for result in pool.prepare([Task("p0/f0.py", 1)])] == ["p0/f0.py"]
    pool.close()


def test_an_embedder_that_cannot_be_made_leaves_the_text(folder: Path, cache: Path) -> None:
    """A missing module or argument is a failure in words; the rows come all the same."""
    spec = EmbedderSpec("no_such_module:make", {"kind": "static"})
    pool = ParsePool(folder, WalkRules(), database_path(folder, cache), spec, n_processes=1)
    results = list(pool.prepare([Task("p0/f0.py", 10)]))
    pool.close()
    assert results[0].rows is not None
    assert results[0].failure is not None
    assert "no_such_module" in results[0].failure.message


# --- the client -------------------------------------------------------------------------------------------------


class Listener:
    """Collects events and waits for them."""

    def __init__(self) -> None:
        self.events: list[WorkerEvent] = []
        self._new = asyncio.Event()

    def __call__(self, event: WorkerEvent) -> None:
        self.events.append(event)
        self._new.set()

    async def until(self, kind: str, after: int = 0) -> WorkerEvent:
        async with asyncio.timeout(30):
            while True:
                for event in self.events[after:]:
                    if event.kind == kind:
                        return event
                self._new.clear()
                await self._new.wait()


@pytest.mark.asyncio
async def test_a_client_starts_updates_configures_and_stops(folder: Path, cache: Path) -> None:
    """The whole of the client against a real worker, while the event loop keeps its pace."""
    listener = Listener()
    client = WorkerClient(folder, cache, listener, processes=1)
    gaps: list[float] = []

    async def heartbeat() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.01)
            gaps.append(time.perf_counter() - start)

    beating = asyncio.create_task(heartbeat())
    await client.start()
    await listener.until("ready")
    (folder / "p0/f0.py").write_text(module("walrus"))
    at = len(listener.events)
    await client.update(["p0/f0.py"])
    await listener.until("ready", at)
    reader = IndexReader(folder, cache)
    assert reader.search(Query("walrus")).files[0].path == "p0/f0.py"
    at = len(listener.events)
    spec = EmbedderSpec("indexing:hash_embedder", {"kind": "static", "dim": 16})
    await client.configure(WalkRules(max_file_size=100_000), spec)
    await listener.until("ready", at)
    await client.rebuild()
    await listener.until("ready", len(listener.events))
    assert reader.status().embedder == "hash:16"
    assert reader.status().n_vectors == reader.status().n_chunks
    pid = client.pid
    await client.stop()
    beating.cancel()
    assert pid is not None
    assert not psutil.pid_exists(pid)
    assert sorted(gaps)[len(gaps) // 2] < 0.1
    reader.close()


@pytest.mark.asyncio
async def test_a_crashed_worker_is_started_again(folder: Path, cache: Path) -> None:
    """A killed process comes back and finishes; the crash is told, and a failing listener hurts nobody."""
    listener = Listener()

    def hear(event: WorkerEvent) -> None:
        listener(event)
        raise ValueError("a listener with a fault")

    client = WorkerClient(folder, cache, hear, restart_waits=(0.01,), processes=1)
    await client.start()
    await listener.until("ready")
    at = len(listener.events)
    assert client.pid is not None
    os.kill(client.pid, signal.SIGKILL)
    assert "started again" in (await listener.until("problem", at)).message
    await listener.until("ready", at)
    await client.stop()


@pytest.mark.asyncio
async def test_a_worker_that_always_crashes_is_given_up(folder: Path, cache: Path) -> None:
    """Four restarts, then off, in words; calls after that do nothing."""
    listener = Listener()
    command = (sys.executable, "-c", "print('not JSON'); raise SystemExit(3)")
    client = WorkerClient(folder, cache, listener, command=command, restart_waits=(0.0,))
    await client.start()
    stopped = await listener.until("stopped")
    assert "5 times (last status 3)" in stopped.message
    assert len([event for event in listener.events if event.kind == "problem"]) == 5
    await client.update()
    await client.stop()


def test_an_embedder_without_a_factory_is_the_built_in_one() -> None:
    """A caller that names no factory means the default, so its vectors are made all the same."""
    assert embedder_spec({}).load().id == load_embedder("static").id


def test_damage_found_in_a_pass_is_repaired_by_that_pass(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rebuild is told among the problems of the pass that ends well, so that a status shows it."""
    index(folder, cache)
    whole, failures = Store.files, [apsw.CorruptError("database disk image is malformed")]

    def files(store: Store) -> object:
        if failures:
            raise failures.pop()
        return whole(store)

    monkeypatch.setattr(Store, "files", files)
    out = io.StringIO()
    worker = Worker(folder, cache, out, n_processes=1)
    worker._commands.put({"command": "update", "paths": None})
    worker._commands.put({"command": "stop"})
    worker.run()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    after = events[max(at for at, event in enumerate(events) if event["event"] == "scanning") :]
    assert any("rebuilt" in event.get("message", "") for event in after)
    assert after[-1]["event"] == "ready"
