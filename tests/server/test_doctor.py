"""What the doctor says of the file of memories."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from haversack.cli.doctor import Check, checks
from haversack.memory import MemoryStore, users_file
from haversack.session import open_session


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return users_file()


def memories(tmp_path: Path) -> Check:
    return next(check for check in checks(tmp_path / "cache") if check.name == "memories")


def test_it_names_the_file_and_counts_its_notes(file: Path, tmp_path: Path) -> None:
    """By scope, with the size; none at all is fine as well, and no word of a note is shown."""
    found = memories(tmp_path)
    assert (found.ok, found.remedy) == (True, "")
    assert "(0 of the user, 0 of 0 folders, " in found.detail
    store = MemoryStore(file)
    for number in range(3):
        store.add("rule", "CANARY", "CANARY", "user", now=1.0)
        store.add("rule", "CANARY", "CANARY", "project", project=f"/ws{number % 2}", now=1.0)
    store.add("rule", "CANARY", "CANARY", "project", project="/ws0", now=1.0)
    store.close()
    found = memories(tmp_path)
    kilobytes = round(file.stat().st_size / 1e3)
    assert found.detail == f"{file} (3 of the user, 4 of 2 folders, {kilobytes} kB)"


def test_it_is_the_file_of_sessions(file: Path, tmp_path: Path) -> None:
    """What the doctor looks at is what a session opens."""
    session = open_session(tmp_path / "cache")
    assert session.memories.store is not None
    session.memories.store.add("rule", "t", "c", "user", now=1.0)
    session.memories.store.close()
    assert "(1 of the user, " in memories(tmp_path).detail


def test_it_says_why_the_file_cannot_be_opened(file: Path, tmp_path: Path) -> None:
    """A newer format, no database, no folder: a row with what to do, and the file is left as it is."""
    file.parent.mkdir(parents=True)
    connection = apsw.Connection(str(file))
    connection.pragma("user_version", 99)
    connection.close()
    found = memories(tmp_path)
    assert not found.ok
    assert found.detail == f"{file}: The memories were written by another version (format 99)."
    assert "newer Haversack" in found.remedy
    file.write_bytes(b"no database " * 400)
    found = memories(tmp_path)
    assert not found.ok
    assert "not a database" in found.detail
    assert "move it aside" in found.remedy
    assert file.read_bytes() == b"no database " * 400
    os.remove(file)
    file.parent.rmdir()
    file.parent.write_text("a file in its place")
    found = memories(tmp_path)
    assert not found.ok
    assert found.detail.startswith(f"{file}: ")
    assert found.remedy
