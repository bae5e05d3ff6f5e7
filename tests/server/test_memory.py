"""Core memories: kept, found, changed and removed, by several processes at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from haversack.memory import LONGEST_CONTENT, MemoryStore
from haversack.types import HaversackError, InvalidRequest


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "data" / "memory.db")


def test_a_memory_is_kept_and_listed_by_scope(store: MemoryStore, tmp_path: Path) -> None:
    """The user's notes go everywhere, a project's only to its folder; both outlive the process."""
    mine = store.add("rule", "Tabs", "Use tabs.", "user", now=1.0, keywords=("style", "tabs"))
    theirs = store.add("knowledge", "Queue", "Jobs run in Redis.", "project", now=2.0, project="/ws")
    assert store.list() == (mine,)
    assert store.list(["/ws"]) == (mine, theirs)
    assert store.list(["/other"]) == (mine,)
    assert MemoryStore(tmp_path / "data" / "memory.db").list(["/ws"]) == (mine, theirs)


def test_a_folder_whose_name_is_no_utf8_has_memories_too(store: MemoryStore) -> None:
    """Python names its odd bytes by lone surrogates, which a database refuses."""
    memory = store.add("rule", "Tabs", "Use tabs.", "project", now=1.0, project="/ws/\udcff")
    assert store.list(["/ws/\udcff"]) == (memory,)
    assert store.list(["/ws"]) == ()


def test_a_memory_is_changed_and_removed(store: MemoryStore) -> None:
    """Only given fields change; an unknown id is an error that says so."""
    memory = store.add("rule", "Tabs", "Use tabs.", "user", now=1.0)
    changed = store.update(memory.id, now=5.0, content="Use blanks.", keywords=["style"])
    assert (changed.title, changed.content, changed.keywords, changed.created, changed.updated) == (
        *("Tabs", "Use blanks.", ("style",)),
        *(1.0, 5.0),
    )
    assert store.list() == (changed,)
    store.delete(memory.id)
    assert store.list() == ()
    for act in (lambda: store.delete(memory.id), lambda: store.update(memory.id, now=6.0, title="x")):
        with pytest.raises(HaversackError) as caught:
            act()
        assert caught.value.code == "memory_not_found"


@pytest.mark.parametrize(
    "fields",
    [
        ("gossip", "t", "c", "user"),
        ("rule", "t", "c", "galaxy"),
        ("rule", " ", "c", "user"),
        ("rule", "t", "", "user"),
        ("rule", "t", "x" * (LONGEST_CONTENT + 1), "user"),
        ("rule", "t", "c", "project"),
    ],
)
def test_a_memory_that_makes_no_sense_is_refused(store: MemoryStore, fields: tuple[str, str, str, str]) -> None:
    """Unknown category or scope, empty or overlong text, a project note without a folder."""
    with pytest.raises(InvalidRequest):
        store.add(*fields, now=1.0)
    assert store.list() == ()


def test_search_finds_by_words_and_ranks_rare_ones_first(store: MemoryStore) -> None:
    """A shared rare word beats a common one, no shared word finds nothing, and one lone note is found too."""
    lone = store.add("knowledge", "Deploy", "We deploy with helm charts.", "user", now=1.0)
    assert [memory for memory, _ in store.search("how do we deploy?")] == [lone]
    for number in range(5):
        store.add("knowledge", f"Note {number}", "The service is deployed on Fridays.", "user", now=2.0 + number)
    found = store.search("deploying the helm chart")
    assert found[0][0] == lone
    assert found[0][1] == 1.0
    assert all(0 < score <= 1 for _, score in found)
    assert [memory for memory, _ in store.search("helm")] == [lone]
    assert store.search("zebra") == ()
    assert store.search("") == ()


def test_equal_memories_come_in_one_order(store: MemoryStore) -> None:
    """Ties are broken by id, so that a prompt does not change between two turns."""
    for number in range(5):
        store.add("knowledge", "Same", "Same words here.", "user", now=float(number))
    ids = [memory.id for memory, _ in store.search("same words")]
    assert ids == sorted(ids)


def test_two_processes_write_at_once(store: MemoryStore, tmp_path: Path) -> None:
    """No note is lost and nobody sees a locked database."""
    code = (
        "import sys; from pathlib import Path; from haversack.memory import MemoryStore\n"
        "store = MemoryStore(Path(sys.argv[1]))\n"
        "[store.add('rule', f'{sys.argv[2]}-{i}', 'text', 'user', now=i) for i in range(60)]"
    )
    file = tmp_path / "data" / "memory.db"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file), name]) for name in "ab"]
    assert [writer.wait(20) for writer in writers] == [0, 0]
    assert len(store.list()) == 120


def test_a_file_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    """Memories of another version are not guessed at."""
    import apsw

    connection = apsw.Connection(str(tmp_path / "m.db"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(HaversackError) as caught:
        MemoryStore(tmp_path / "m.db")
    assert caught.value.code == "memory_format_unknown"
