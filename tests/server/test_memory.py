"""Core memories: kept, found, changed and removed, by several processes at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from haversack.memory import LONGEST_CONTENT, MemoryStore
from haversack.memory import store as memory_store
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
    connection = apsw.Connection(str(tmp_path / "m.db"))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(HaversackError) as caught:
        MemoryStore(tmp_path / "m.db")
    assert caught.value.code == "memory_format_unknown"


def test_an_error_names_the_field(store: MemoryStore) -> None:
    """So that a form can show it where it belongs."""
    good = {"category": "rule", "title": "t", "content": "c", "scope": "user"}
    for field, value in (
        *(("category", "gossip"), ("title", "x" * 201), ("title", "two\nlines"), ("content", " "), ("scope", "moon")),
        *(("keywords", ["a|b"]), ("keywords", [f"k{n}" for n in range(33)]), ("origins", ["a\0b"])),
    ):
        with pytest.raises(InvalidRequest) as refused:
            store.add(**{**good, field: value}, now=1.0)  # type: ignore[arg-type]
        assert str(refused.value.details["field"]).startswith(field)
        assert field in refused.value.message


def test_meaning_finds_what_shares_no_word(store: MemoryStore) -> None:
    """A note near the question is found by the built-in embedder; one about something else is not."""
    queue = store.add("knowledge", "Queue", "Jobs run in Redis and are retried three times.", "user", now=1.0)
    store.add("knowledge", "Tabs", "Makefiles are indented by tabs.", "user", now=2.0)
    found = store.search("a background task fails again and again")
    assert [memory for memory, _ in found] == [queue]
    assert store.search("what is the weather in Paris") == ()


def test_origins_are_never_taken_away(store: MemoryStore) -> None:
    """What a note was derived from stays true whatever is changed."""
    memory = store.add("rule", "t", "c", "user", now=1.0, origins=["ws/secret.py"])
    changed = store.update(memory.id, now=2.0, content="other", origins=["ws/b.py"], private=True)
    assert (changed.origins, changed.private) == (("ws/secret.py", "ws/b.py"), True)
    assert store.update(memory.id, now=3.0, title="u").origins == changed.origins


def test_a_change_sees_what_another_process_changed(tmp_path: Path) -> None:
    """Two editors change different fields of one note: both changes stand."""
    one, two = MemoryStore(tmp_path / "m.db"), MemoryStore(tmp_path / "m.db")
    memory = one.add("rule", "t", "c", "user", now=1.0)
    two.update(memory.id, now=2.0, title="two")
    one.update(memory.id, now=3.0, content="one")
    assert [(each.title, each.content) for each in two.list()] == [("two", "one")]


def test_a_locked_file_is_an_error_to_act_on(store: MemoryStore, tmp_path: Path) -> None:
    """Another program holds the database: the note is not lost in silence."""
    other = apsw.Connection(str(tmp_path / "data" / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    store._connection.set_busy_timeout(1)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(HaversackError) as refused:
        store.add("rule", "t", "c", "user", now=1.0)
    assert refused.value.code == "memory_busy"
    other.execute("ROLLBACK")
    store.add("rule", "t", "c", "user", now=1.0)


def test_a_writer_waits_for_another(store: MemoryStore, tmp_path: Path) -> None:
    """Who writes at the same moment has to wait, and is not refused."""
    other = apsw.Connection(str(tmp_path / "data" / "memory.db"))
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.1, other.execute, ("COMMIT",))
    release.start()
    store.add("rule", "t", "c", "user", now=1.0)
    release.join()
    assert len(store.list()) == 1


def test_there_is_a_limit_to_what_is_kept(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question looks at all notes, so a tool in a loop must not fill the store."""
    monkeypatch.setattr(memory_store, "MOST_MEMORIES", 2)
    for number in range(2):
        store.add("rule", f"{number}", "c", "user", now=1.0)
    with pytest.raises(HaversackError) as refused:
        store.add("rule", "t", "c", "user", now=1.0)
    assert refused.value.code == "memory_full"
    store.add("rule", "t", "c", "project", now=1.0, project="/ws")


def test_memories_of_the_first_format_are_kept(tmp_path: Path) -> None:
    """A file of an earlier version opens with all its notes."""
    connection = apsw.Connection(str(tmp_path / "m.db"))
    connection.execute(
        "CREATE TABLE memory (id TEXT PRIMARY KEY, category TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL,"
        " keywords TEXT NOT NULL, scope TEXT NOT NULL, project TEXT NOT NULL, created REAL NOT NULL,"
        " updated REAL NOT NULL)"
    )
    connection.execute("INSERT INTO memory VALUES ('a', 'rule', 't', 'c', 'x|y', 'project', '/ws', 1.0, 2.0)")
    connection.pragma("user_version", 1)
    connection.close()
    (memory,) = MemoryStore(tmp_path / "m.db").list(["/ws"])
    assert (memory.id, memory.keywords, memory.private, memory.origins) == ("a", ("x", "y"), False, ())
