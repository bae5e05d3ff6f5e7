"""Changes on disk are reported by relative path, through the walk's verdicts, and never lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from haversack_index import watch as module
from haversack_index.walk import WalkRules
from haversack_index.watch import watch

# Long enough for a busy machine; a test that passes takes a fraction of it.
PATIENCE = 10.0


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ignore file of whoever runs the tests must not decide them; waiting for quiet can be short."""
    monkeypatch.setenv("HOME", os.fspath(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(module, "_QUIET_MS", 30)


class Reports:
    """What the watcher said so far."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.rescans = 0
        self.problems: list[str] = []

    def change(self, paths: set[str] | None) -> None:
        if paths is None:
            self.rescans += 1
        else:
            self.paths |= paths

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - the condition is any of the test's
                await asyncio.sleep(0.01)


def watched(root: Path, act: Callable[[Reports], Awaitable[None]], poll_seconds: float = 60.0) -> Reports:
    """Run `act` while `root` is watched; the watcher must end by itself when told to stop."""
    reports = Reports()

    async def run() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(
            watch(root, WalkRules(), reports.change, stop, reports.problems.append, poll_seconds=poll_seconds)
        )
        try:
            if poll_seconds >= 1:
                await ready(root, reports)
            await act(reports)
        finally:
            stop.set()
            async with asyncio.timeout(PATIENCE):
                await task

    asyncio.run(run())
    return reports


async def ready(root: Path, reports: Reports) -> None:
    """Wait until the watcher is at work, by touching a file until it is reported."""
    async with asyncio.timeout(PATIENCE):
        while "probe.py" not in reports.paths:
            (root / "probe.py").write_text("x")
            await asyncio.sleep(0.05)
    (root / "probe.py").unlink()
    reports.paths.clear()


def test_changes_are_relative_and_filtered(tmp_path: Path) -> None:
    """Saved, new and deleted files are reported; ignored, hidden, secret and dependency files are not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    (tmp_path / "src" / "old.py").write_text("x")

    async def act(reports: Reports) -> None:
        for name in ("src/a.log", ".hidden", ".env", "src/id_rsa", "node_modules/x.js"):
            (tmp_path / name).write_text("x")
        (tmp_path / "src" / "a.py").write_text("x")
        (tmp_path / "src" / "old.py").unlink()
        await reports.until(lambda: {"src/a.py", "src/old.py"} <= reports.paths)

    assert watched(tmp_path, act).paths <= {"src/a.py", "src/old.py", "probe.py"}


def test_new_folders_are_seen_whole(tmp_path: Path) -> None:
    """Files in folders that appear, however quickly, are reported, and so are later changes in them."""

    async def act(reports: Reports) -> None:
        for n in range(5):
            (tmp_path / f"d{n}" / "e" / "f").mkdir(parents=True)
            (tmp_path / f"d{n}" / "e" / "f" / "a.py").write_text("x")
        wanted = {f"d{n}/e/f/a.py" for n in range(5)}
        await reports.until(lambda: wanted <= reports.paths)
        reports.paths.clear()
        (tmp_path / "d3" / "e" / "f" / "b.py").write_text("x")
        await reports.until(lambda: "d3/e/f/b.py" in reports.paths)

    watched(tmp_path, act)


def test_a_folder_removed_and_made_again_is_watched_again(tmp_path: Path) -> None:
    """Its removal is reported, and changes in the new one are seen."""
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "a.py").write_text("x")

    async def act(reports: Reports) -> None:
        (tmp_path / "d").rename(tmp_path / "moved")
        await reports.until(lambda: "d" in reports.paths and "moved/e/a.py" in reports.paths)
        (tmp_path / "d" / "e").mkdir(parents=True)
        await asyncio.sleep(0.2)
        (tmp_path / "d" / "e" / "b.py").write_text("x")
        await reports.until(lambda: "d/e/b.py" in reports.paths)

    watched(tmp_path, act)


def test_a_changed_rule_file_asks_for_a_full_walk(tmp_path: Path) -> None:
    """New rules can let in or out anything; folders they let in are watched from then on."""
    (tmp_path / "out").mkdir()
    (tmp_path / ".gitignore").write_text("out/\n")

    async def act(reports: Reports) -> None:
        (tmp_path / ".gitignore").write_text("other/\n")
        await reports.until(lambda: reports.rescans > 0)
        (tmp_path / "out" / "a.py").write_text("x")
        await reports.until(lambda: "out/a.py" in reports.paths)

    watched(tmp_path, act)


def test_links_are_not_watched_through(tmp_path: Path) -> None:
    """A change behind a link out of the folder is nobody's business here."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to("../outside")

    async def act(reports: Reports) -> None:
        (tmp_path / "outside" / "secret.py").write_text("x")
        (tmp_path / "ws" / "a.py").write_text("x")
        await reports.until(lambda: "a.py" in reports.paths)

    assert watched(tmp_path / "ws", act).paths <= {"a.py", "probe.py"}


def test_without_watches_it_polls_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system has no watches left, the user hears it once and changes are still found, later."""

    def no_watches(*_: object, **__: object) -> object:
        raise OSError(28, "OS file watch limit reached.")

    monkeypatch.setattr(module, "awatch", no_watches)

    async def act(reports: Reports) -> None:
        await reports.until(lambda: reports.rescans >= 3)

    reports = watched(tmp_path, act, poll_seconds=0.02)
    assert len(reports.problems) == 1
    assert "watch limit" in reports.problems[0]


def test_cancelling_the_watch_leaves_no_task_behind(tmp_path: Path) -> None:
    """A cancelled watcher stops its thread too, so that the process can end."""

    async def run() -> None:
        task = asyncio.create_task(watch(tmp_path, WalkRules(), lambda _: None, asyncio.Event()))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
