"""The session's state without any protocol: folders, snapshots, settings, changed files, indexes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e.fakes import CANARY, FakeIndexing, FakeLine

from haversack import indexing
from haversack.documents import Edit
from haversack.session import Session
from haversack.types import Diagnostic, InvalidRequest, Position, Problem, Request
from haversack_index.types import IndexState, IndexStatus


def make_session(
    index: FakeIndexing | None = None, line: FakeLine | None = None, clock: Callable[[], float] = lambda: 7.0
) -> Session:
    return Session(line=line or FakeLine(), indexing=index or FakeIndexing(), clock=clock)


@pytest.fixture(autouse=True)
def quick_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes go to the worker after milliseconds instead of tenths of seconds."""
    monkeypatch.setattr(indexing, "DEBOUNCE", 0.02)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.005)


@pytest.mark.asyncio
async def test_snapshot_is_frozen(tmp_path: Path) -> None:
    """What changes after a snapshot was taken does not show in it."""
    async with make_session() as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        uri = (tmp_path / "src" / "a.py").as_uri()
        session.documents.open(uri, "python", "before")
        session.set_diagnostics(uri, [Diagnostic(uri, Position(0, 0), Position(0, 1), 1, "wrong")])
        snapshot = session.snapshot()
        session.documents.change(uri, [Edit(None, "after")])
        session.set_diagnostics(uri, [])
        session.remove_folder(tmp_path.as_uri())
        document = snapshot.documents[uri]
        assert (document.folder, document.path, document.text) == ("ws", "src/a.py", "before")
        assert [folder.key for folder in snapshot.folders] == ["ws"]
        assert len(snapshot.diagnostics) == 1
        assert snapshot.recent == (uri,)
        assert snapshot.now == 7.0
        later = session.snapshot()
        assert (later.documents[uri].text, later.documents[uri].folder) == ("after", None)
        assert later.diagnostics == ()


@pytest.mark.asyncio
async def test_folders_with_one_name_get_different_keys(tmp_path: Path) -> None:
    """Two folders called alike can be told apart; the same folder twice is one."""
    async with make_session() as session:
        for part in ("one", "two"):
            (tmp_path / part / "api").mkdir(parents=True)
            session.add_folder((tmp_path / part / "api").as_uri(), "api")
            session.add_folder((tmp_path / part / "api").as_uri() + "/", "api")
        assert [folder.key for folder in session.folders] == ["api", "api-2"]
        assert session.find_folder((tmp_path / "two" / "api").as_uri()) == "api-2"
        assert session.find_folder("api") == "api"
        with pytest.raises(InvalidRequest):
            session.find_folder("file:///elsewhere")
        assert session.add_folder("untitled:folder") is None


@pytest.mark.asyncio
async def test_innermost_folder_owns_a_file(tmp_path: Path) -> None:
    """Nested folders, a name that is only a prefix, and a folder reached through a link."""
    (tmp_path / "ws" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    async with make_session() as session:
        session.add_folder((tmp_path / "link").as_uri(), "outer")
        session.add_folder((tmp_path / "ws" / "inner").as_uri(), "inner")
        assert session.locate(tmp_path / "ws" / "inner" / "a.py") == ("inner", "a.py")
        assert session.locate(tmp_path / "ws" / "b.py") == ("outer", "b.py")
        assert session.locate(tmp_path / "link" / "b.py") == ("outer", "b.py")
        assert session.locate(tmp_path / "ws-evil" / "b.py") is None
        assert session.locate(tmp_path / "ws") is None


@pytest.mark.asyncio
async def test_questions_do_not_wait_for_indexing(tmp_path: Path) -> None:
    """While a pass is under way a question is answered from what the reader has."""
    line = FakeLine()
    async with make_session(FakeIndexing(step=10), line) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        session.start_indexing()
        started = time.monotonic()
        bundle = await session.context(Request("hello"))
        assert time.monotonic() - started < 1
        assert bundle.status == "completed"
        assert list(line.workspaces[0].indexes) == ["ws"]
        earlier = session.snapshot()
        await session.context(Request("hello"), earlier)
        assert line.workspaces[1].snapshot is earlier
        assert session.status("ws")[0][1].state is IndexState.SCANNING


@pytest.mark.asyncio
async def test_wait_ready_tells_progress(tmp_path: Path) -> None:
    """The command line's way: wait for the index and hear every step of it."""
    async with make_session() as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        steps: list[IndexStatus] = []
        status = await asyncio.wait_for(session.wait_ready("ws", steps.append), 5)
        assert (status.state, status.n_files, status.skipped) == (IndexState.READY, 10, {"binary": 2})
        # A count of the growing index may tell a step twice; none is left out or told late.
        told = [step.done for step in steps if step.state is IndexState.INDEXING]
        assert told == sorted(told)
        assert sorted(set(told))[:5] == [0, 1, 2, 3, 4]
        await session.rebuild("ws")
        assert (await asyncio.wait_for(session.wait_ready("ws"), 5)).state is IndexState.READY


@pytest.mark.asyncio
async def test_changes_reach_the_worker_in_batches(tmp_path: Path) -> None:
    """Saves and watched files are gathered for a moment, each path once, by folder; other files are nobody's."""
    index = FakeIndexing()
    async with make_session(index) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        await session.wait_ready()
        for _ in range(3):
            session.document_saved((tmp_path / "a.py").as_uri())
        session.files_changed([(tmp_path / "b" / "c.py").as_uri(), "file:///elsewhere/d.py", "untitled:1"])
        await until(lambda: len(index.workers[0].updates) == 2)
        assert index.workers[0].updates == [None, ["a.py", "b/c.py"]]
        assert (await asyncio.wait_for(session.wait_ready(), 5)).state is IndexState.READY


@pytest.mark.asyncio
async def test_changes_that_never_rest_are_sent_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that writes without a pause does not keep the index waiting; a flood becomes one full pass."""
    monkeypatch.setattr(indexing, "LONGEST_WAIT", 0.1)
    monkeypatch.setattr(indexing, "MAX_PATHS", 5)
    index = FakeIndexing()
    async with make_session(index) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        await session.wait_ready()
        for number in range(40):
            session.files_changed([(tmp_path / f"{number}.py").as_uri()])
            await asyncio.sleep(0.01)
        assert len(index.workers[0].updates) >= 2
        assert index.workers[0].updates[1] is None


@pytest.mark.asyncio
async def test_own_watcher_reports_to_the_worker(tmp_path: Path) -> None:
    """Where the client cannot watch, each folder is watched, and what the watcher says becomes an update."""
    index = FakeIndexing()
    async with make_session(index) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        session.start_indexing(watch=True)
        await session.wait_ready()
        await until(lambda: index.report is not None)
        assert index.report is not None
        index.report({"x.py"})
        await until(lambda: index.workers[0].updates == [None, ["x.py"]])


@pytest.mark.asyncio
@pytest.mark.parametrize("fails", ["reader", "watch"])
async def test_broken_indexes_do_not_break_answers(tmp_path: Path, fails: str) -> None:
    """A folder without an index or a watcher says so in its status, without the exception's words, and is served."""
    async with make_session(FakeIndexing(fails=fails)) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        session.start_indexing(watch=True)
        assert (await session.context(Request("hello"))).status == "completed"
        await until(lambda: session.status()[0][1].state is IndexState.DEGRADED)
        problems = session.status()[0][1].problems
        assert "OSError" in problems[0]
        assert CANARY not in repr(problems)


@pytest.mark.asyncio
async def test_removed_folders_stop(tmp_path: Path) -> None:
    """Taking a folder away ends its worker and closes its reader; closing the session ends the rest."""
    index = FakeIndexing()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with make_session(index) as session:
        for name in ("a", "b"):
            session.add_folder((tmp_path / name).as_uri(), name)
            await session.wait_ready(name)
        session.remove_folder((tmp_path / "a").as_uri())
        await until(lambda: index.workers[0].stopped and index.readers[0].closed)
        assert [folder.key for folder in session.folders] == ["b"]
        assert not index.workers[1].stopped
    assert index.workers[1].stopped
    assert index.readers[1].closed


@pytest.mark.asyncio
async def test_removing_a_folder_cancels_no_request(tmp_path: Path) -> None:
    """A rebuild that waits for a folder's start is answered when the folder goes; only clients cancel requests."""
    async with make_session(FakeIndexing()) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        waiting = asyncio.create_task(session.rebuild("ws"))
        await asyncio.sleep(0)
        session.remove_folder(tmp_path.as_uri())
        await waiting


@pytest.mark.asyncio
async def test_settings_reach_requests_and_workers(tmp_path: Path) -> None:
    """Later layers win, bad values become problems of every answer; a worker hears of what shapes its index only."""
    index, line = FakeIndexing(), FakeLine()
    async with make_session(index, line) as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        await session.wait_ready()
        session.update_settings({"contextWindow": "8k"}, {"contextWindow": "4k", "noSuchSetting": 1})
        await session.context(Request("hello", problems=(Problem("request", "x", "first"),)))
        assert line.workspaces[0].snapshot.settings.context_window == 4_000
        assert [problem.code for problem in line.requests[0].problems] == ["x", "unknown_setting"]
        await asyncio.sleep(0.02)
        assert not index.workers[0].configured
        session.update_settings({"includeHidden": True})
        assert session.settings.include_hidden, session.settings_problems
        await until(lambda: index.workers[0].configured)
        assert len(index.readers) == 2


@pytest.mark.asyncio
async def test_untrusted_workspaces_cannot_name_endpoints() -> None:
    """Without trust a setting that sends text somewhere is refused and named."""
    async with make_session() as session:
        values = {"embedding": {"endpoint": "http://evil.example", "model": "m"}, "embedder": "ollama"}
        session.trusted = False
        session.update_settings(values)
        assert session.settings.embedder_endpoint == ""
        assert session.settings_problems


@pytest.mark.asyncio
async def test_the_loop_stays_free_while_threads_work(tmp_path: Path) -> None:
    """Blocking work of a question runs on threads: the loop keeps its beat."""
    async with make_session() as session:
        session.add_folder(tmp_path.as_uri(), "ws")
        slow = [asyncio.create_task(session.context(Request("block 0.3"))) for _ in range(6)]
        gaps: list[float] = []
        before = time.monotonic()
        while not all(task.done() for task in slow):
            await asyncio.sleep(0.005)
            gaps.append(time.monotonic() - before)
            before = time.monotonic()
        assert max(gaps) < 0.15
