"""Updates: equal to a rebuild after anything, taken up after anything, and never more work than needed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from indexing import HashEmbedder, dump, index, module, write_tree

from haversack_index import preparation, prepare, update
from haversack_index.chunk import parse_file
from haversack_index.database import cursor_of, database_path, open_reading
from haversack_index.embed import HttpEmbedder
from haversack_index.prepare import Prepared
from haversack_index.reader import IndexReader
from haversack_index.store import Store
from haversack_index.types import IndexState, Query, SkipReason, Tier
from haversack_index.update import Update, embed_missing
from haversack_index.walk import CannotRead, Found, Skipped, WalkRules
from haversack_index.walk import read_file as real_read_file
from haversack_index.walk import walk as real_walk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "w", {f"p{i % 3}/f{i}.py": module(f"topic{i}") for i in range(9)})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "c"


def fresh(folder: Path, cache: Path, **options: Any) -> dict[str, list[tuple[object, ...]]]:
    """The dump of an index built from nothing."""
    other = cache.with_name(cache.name + "-fresh")
    shutil.rmtree(other, ignore_errors=True)
    index(folder, other, **options)
    return dump(folder, other)


PATHS = ["a.py", "b.py", "d/a.py", "d/e/c.py", "d/e/notes.md", "x.min.js", "b.bin"]
CONTENTS = [
    module("zebra"),
    module("heron", 3),
    "# Title\n\ntext\n",
    "",
    "\x00\x01binary",
    "x = 1\r\ny = 2\r",
    "é = 'ü'\n",
]
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(CONTENTS)),
        st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just("")),
        st.tuples(st.just("rename"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
        st.tuples(st.just("folder"), st.sampled_from(PATHS), st.just("")),
        st.tuples(st.just("ignore"), st.just(".gitignore"), st.sampled_from(["", "d/\n", "*.md\n", "a.py\n!d/a.py\n"])),
        st.tuples(st.just("pass"), st.sampled_from(["all", "paths"]), st.just("")),
    ),
    max_size=14,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EDITS)
def test_update_equals_rebuild(edits: list[tuple[str, str, str]]) -> None:
    """After any edits, renames and deletes, told of or not, the index equals one built from nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "w", Path(scratch) / "c"
        folder.mkdir()
        (folder / ".git").mkdir()
        embedder = HashEmbedder()
        touched: list[str] = []
        for action, path, value in edits:
            if action == "pass":
                index(folder, cache, embedder=embedder, paths=touched if path == "paths" else None)
                touched = []
                continue
            touched += _edit(folder, action, path, value)
        index(folder, cache, embedder=embedder, paths=touched)
        index(folder, cache, embedder=embedder)
        assert dump(folder, cache) == fresh(folder, cache, embedder=embedder)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EDITS)
def test_told_paths_are_enough(edits: list[tuple[str, str, str]]) -> None:
    """When every change is told, updates of single paths alone keep the index equal to one built from nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "w", Path(scratch) / "c"
        folder.mkdir()
        (folder / ".git").mkdir()
        index(folder, cache)
        for action, path, value in edits:
            touched = _edit(folder, action, path, value)
            if touched:
                index(folder, cache, paths=touched)
        assert dump(folder, cache) == fresh(folder, cache)


def _edit(folder: Path, action: str, path: str, value: str) -> list[str]:
    target = folder / path
    if action in ("write", "ignore"):
        if any(parent.is_file() for parent in target.parents) or target.is_dir():
            return []
        write_tree(folder, {path: value})
    elif action == "delete" and target.exists():
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    elif action == "rename" and target.is_file() and path != value:
        other = folder / value
        if other.is_dir() or any(parent.is_file() for parent in other.parents):
            return []
        other.parent.mkdir(parents=True, exist_ok=True)
        target.rename(other)
        return [path, value]
    elif action == "folder" and target.is_file():
        target.unlink()
        target.mkdir()
        (target / "inner.py").write_text(module("inner"))
    else:
        return []
    return [path]


def test_every_state_of_the_disk_is_found_after_a_pass(folder: Path, cache: Path) -> None:
    """Bug B21: what was committed, what was only edited, and what was only touched are all right after one pass."""
    index(folder, cache)
    generation = IndexReader(folder, cache).generation
    write_tree(folder, {"p0/fresh.py": "def fresh_one():\n    return 1\n"})
    text = (folder / "p1/f1.py").read_text()
    (folder / "p1/f1.py").write_text(text.replace("topic1", "other1"))  # the same size
    os.utime(folder / "p2/f2.py")
    result = index(folder, cache)
    assert result.n_written == 2
    reader = IndexReader(folder, cache)
    assert reader.definitions(["fresh_one"])[0].span.path == "p0/fresh.py"
    assert reader.definitions(["other1_step_0"])
    assert not reader.definitions(["topic1_step_0"])
    unchanged = reader.file("p2/f2.py")
    assert unchanged is not None
    assert unchanged.generation == generation
    assert dump(folder, cache) == fresh(folder, cache)


def test_deleted_and_renamed_files_do_not_answer(folder: Path, cache: Path) -> None:
    """Bug B22: no ghost of a deleted file; a renamed one is found under its new name, at today's lines."""
    write_tree(folder, {"ghost.md": "# Ghost\n\nzebrafinch77\n", "old.py": "def make_box():\n    return []\n"})
    index(folder, cache)
    (folder / "ghost.md").unlink()
    (folder / "old.py").rename(folder / "new.py")
    (folder / "new.py").write_text("# line\n" * 10 + (folder / "new.py").read_text())
    index(folder, cache, paths=["ghost.md", "old.py", "new.py"])
    reader = IndexReader(folder, cache)
    assert reader.search(Query("zebrafinch77")).files == ()
    found = reader.definitions(["make_box"])
    assert [(symbol.span.path, symbol.line) for symbol in found] == [("new.py", 10)]
    assert reader.file("old.py") is None
    reader.close()


@pytest.mark.parametrize("at", ["chunks", "words", "symbols", "commit"])
def test_a_pass_broken_anywhere_is_taken_up(
    folder: Path, cache: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug B24: what broke leaves no file without chunks, and the second run does only the rest."""
    monkeypatch.setattr(update, "BATCH_FILES", 2)
    inserted = 0
    original = Store.write

    def write(store: Store, files: object = (), *rest: object, **named: object) -> int:
        nonlocal inserted
        inserted += len(files)  # pyright: ignore[reportArgumentType]
        if inserted <= 4:
            return original(store, files, *rest, **named)  # pyright: ignore[reportArgumentType]
        with store.batch() as cursor:  # as far as the named step, then it breaks
            cursor.execute("INSERT INTO files VALUES(99, 'half.py', 'h', 1, 1, 0, 'python', 1, 1, '', '', '')")
            if at == "words":
                cursor.execute("INSERT INTO words(rowid, path, names, body) VALUES(999, 'a', 'b', 'c')")
            elif at == "symbols":
                cursor.execute("DELETE FROM chunks")
            raise KeyboardInterrupt
        return 0

    monkeypatch.setattr(Store, "write", write)
    with pytest.raises(KeyboardInterrupt):
        index(folder, cache)
    monkeypatch.undo()
    result = index(folder, cache)
    assert 0 < result.n_written < 9
    assert dump(folder, cache) == fresh(folder, cache)


def test_an_unchanged_file_is_not_even_read(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and size decide, once they are old enough to prove anything; a file just written is read again."""
    assert index(folder, cache).n_read == 9
    assert index(folder, cache).n_read == 9
    for path in folder.rglob("*.py"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert index(folder, cache).n_read == 9
    result = index(folder, cache)
    assert (result.n_read, result.n_written) == (0, 0)


def test_a_file_skipped_for_its_content_is_not_read_again(tmp_path: Path, cache: Path) -> None:
    """Binary files cost one read, not one per pass; when they change they are looked at."""
    folder = write_tree(tmp_path / "w", {"a.bin": b"\x00\x01", "a.py": "x = 1\n"})
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    index(folder, cache)
    assert index(folder, cache).n_read == 0
    assert IndexReader(folder, cache).status().skipped == {"binary": 1}
    (folder / "a.bin").write_text("now = 'text'\n")
    assert index(folder, cache).n_written == 1
    assert IndexReader(folder, cache).status().skipped == {}


def test_an_index_of_another_build_is_prepared_again(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old rows answer until new ones replace them, a stopped pass is taken up, and skipped content is judged again."""
    write_tree(folder, {"a.bin": b"\x00\x01"})
    for path in [*folder.rglob("*.py"), folder / "a.bin"]:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    monkeypatch.setattr(preparation, "current", lambda: "older")
    monkeypatch.setattr(prepare, "counted", lambda text: Counter(["walrus"]))
    index(folder, cache)
    assert index(folder, cache).n_read == 0
    monkeypatch.undo()
    monkeypatch.setattr(update, "BATCH_FILES", 2)
    reader = IndexReader(folder, cache)
    calls = iter([False, False, False, True])
    stopped = index(folder, cache, stop=lambda: next(calls))
    assert (stopped.stopped, stopped.n_written) == (True, 3)
    assert len(reader.search(Query("walrus", ("walrus",))).files) == 6
    assert index(folder, cache).n_read == 7
    assert reader.search(Query("walrus", ("walrus",))).files == ()
    reader.close()
    assert dump(folder, cache) == fresh(folder, cache)
    assert index(folder, cache).n_read == 0


def test_what_decides_how_files_are_prepared_is_in_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed module, query or grammar package gives another version; the same ones give the same."""
    package = tmp_path / "package"
    shutil.copytree(Path(preparation.__file__).parent, package, ignore=shutil.ignore_patterns("data", "__pycache__"))
    monkeypatch.setattr(preparation, "files", lambda _: package)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    now = preparation.current.__wrapped__
    seen = [now()]
    (package / "worker.py").write_text("")
    assert now() == seen[0]
    (package / "cut.py").write_text("# other limits\n")
    seen.append(now())
    (package / "queries" / "python.scm").write_text("")
    seen.append(now())
    (tmp_path / "tree_sitter_python-0.25.0.dist-info").mkdir()
    seen.append(now())
    assert len(set(seen)) == 4
    assert all((package / f"{name}.py").is_file() for name in preparation.MODULES)


def test_files_that_vanish_between_list_and_read(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug B32: gone files, folders in their place and unreadable ones cost themselves only; the pass ends at 100 %."""
    index(folder, cache)
    for path in folder.rglob("*.py"):
        path.write_text(path.read_text() + "# changed\n")
    (folder / "new.py").write_text(module("new"))

    def walk(root: Path, rules: WalkRules) -> object:
        items = list(real_walk(root, rules))
        (folder / "new.py").unlink()
        (folder / "p0/f0.py").unlink()
        (folder / "p0/f3.py").unlink()
        (folder / "p0/f3.py").mkdir()
        yield from (item for item in items if not item.path.startswith("p2/"))
        yield Skipped("p2/", SkipReason.UNREADABLE, "Permission denied")

    def read_file(root: Path, path: str, limit: int) -> bytes:
        if path == "p1/f4.py":
            raise CannotRead(path, SkipReason.UNREADABLE, "Permission denied")
        return real_read_file(root, path, limit)

    monkeypatch.setattr(update, "walk", walk)
    monkeypatch.setattr(prepare, "read_file", read_file)
    seen: list[tuple[str, int, int]] = []
    index(folder, cache, on_progress=lambda *now: seen.append(now))
    reader = IndexReader(folder, cache)
    kept = [file.path for file in reader.files()]
    assert kept == ["p0/f6.py", "p1/f1.py", "p1/f4.py", "p1/f7.py", "p2/f2.py", "p2/f5.py", "p2/f8.py"]
    assert reader.status().skipped == {"gone": 2, "special-file": 1, "unreadable": 2}
    assert seen[-1] == ("indexing", 7, 7)
    assert (reader.status().done, reader.status().total) == (7, 7)


def test_a_folder_that_is_not_there_keeps_its_index(folder: Path, cache: Path) -> None:
    """An unmounted disk is not a hundred thousand deletes."""
    index(folder, cache)
    folder.rename(folder.with_name("away"))
    database = database_path(folder, cache)
    result = index(folder, cache)
    assert "does not exist" in result.problems[0]
    assert len(dump(folder, cache)["files"]) == 9
    assert database.exists()


def test_ignore_rules_hold_for_single_paths(folder: Path, cache: Path) -> None:
    """A saved file that is ignored is not indexed, and a changed rule file is applied to everything."""
    (folder / ".git").mkdir()
    write_tree(folder, {".haversackignore": "secret/\n", "secret/key.py": "TOKEN = 'zebra'\n"})
    index(folder, cache)
    index(folder, cache, paths=["secret/key.py", ".env", "../outside.py", "/etc/passwd", "", "a\x00b", "\ud800"])
    reader = IndexReader(folder, cache)
    assert reader.file("secret/key.py") is None
    assert len(reader.files()) == 9
    (folder / ".gitignore").write_text("p0/\n")
    index(folder, cache, paths=[".gitignore"])
    assert len(reader.files()) == 6
    reader.close()


def test_one_oversized_chunk_costs_itself_only(tmp_path: Path, cache: Path) -> None:
    """Bug B39: a text the model refuses for its length is named and found by words; all other files are complete."""
    big = "\n".join(f"VALUE_{i} = {i} # zebra" for i in range(900)) + "\n"
    folder = write_tree(tmp_path / "w", {"a.py": module("heron"), "b.txt": big, "c.py": module("walrus")})
    embedder = HashEmbedder(max_words=100)
    result = index(folder, cache, embedder=embedder)
    assert result.failure is None
    assert [problem for problem in result.problems if "b.txt" in problem and "too long" in problem]
    reader = IndexReader(folder, cache, embedder)
    status = reader.status()
    assert (status.n_files, status.n_vectors) == (3, status.n_chunks)
    assert reader.search(Query("zebra")).files[0].path == "b.txt"
    assert reader.search(Query("walrus")).files[0].path == "c.py"
    reader.close()


def test_vectors_come_later_when_the_service_was_down(folder: Path, cache: Path) -> None:
    """Bug B84: the text index is whole at once, the cause is named, and one later pass adds all vectors."""
    embedder = HashEmbedder()
    embedder.down = True
    result = index(folder, cache, embedder=embedder)
    assert result.failure is not None
    assert not result.failure.lasting
    reader = IndexReader(folder, cache, embedder)
    status = reader.status()
    assert (status.n_files, status.n_vectors, status.state) == (9, 0, IndexState.DEGRADED)
    assert "refused the connection" in status.problems[0]
    assert reader.search(Query("topic3")).tier is Tier.KEYWORD
    embedder.down = False
    store = Store(database_path(folder, cache))
    assert embed_missing(store, folder, WalkRules(), embedder) is None
    store.close()
    assert reader.search(Query("topic3")).tier is Tier.HYBRID
    assert reader.status().n_vectors == status.n_chunks
    assert dump(folder, cache) == fresh(folder, cache, embedder=embedder)
    reader.close()


def test_withheld_files_are_never_sent_to_an_embedding_service(tmp_path: Path, cache: Path) -> None:
    """Restricted text is found by its words; not indexing, nor late vectors, nor an unsaved buffer sends it."""
    files = {"data/keys.py": module("canary"), "src/a.py": module("heron")}
    folder = write_tree(tmp_path / "w", files)
    sent: list[str] = []

    def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
        del url, headers, timeout
        sent.extend(json["input"])
        return {"embeddings": [[1.0, float(len(text))] for text in json["input"]]}

    embedder = HttpEmbedder("ollama", "https://far.example", "m", post, withholds=lambda path: path.startswith("data/"))
    assert index(folder, cache, embedder=embedder).failure is None
    store = Store(database_path(folder, cache))
    assert embed_missing(store, folder, WalkRules(), embedder) is None
    store.close()
    reader = IndexReader(folder, cache, embedder)
    unsaved = (parse_file("data/keys.py", module("canary", 3)), parse_file("src/b.py", module("walrus")))
    found = reader.search(Query("where is the secret bird", ("canary",), overlay=unsaved))
    assert "data/keys.py" in [file.path for file in found.files]
    assert not found.problems
    assert 0 < reader.status().n_vectors < reader.status().n_chunks
    reader.close()
    assert any("heron" in text for text in sent)
    assert any("walrus" in text for text in sent)
    assert not [text for text in sent if "canary" in text]


@pytest.mark.parametrize("is_late", [False, True])
def test_vectors_go_when_their_file_is_withheld_later(tmp_path: Path, cache: Path, is_late: bool) -> None:
    """New patterns take back what a service made before, of older text too, in a pass or once it is reachable."""
    folder = write_tree(tmp_path / "w", {"data/keys.py": module("canary"), "src/a.py": module("heron")})

    def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
        del url, headers, timeout
        return {"embeddings": [[1.0, float(len(text))] for text in json["input"]]}

    def service(withholds: Callable[[str], bool] | None = None) -> HttpEmbedder:
        return HttpEmbedder("ollama", "https://far.example", "m", post, withholds=withholds)

    index(folder, cache, embedder=service())
    write_tree(folder, {"data/keys.py": module("canary", 3)})
    index(folder, cache, embedder=service())
    assert {row[0] for row in dump(folder, cache)["vectors"]} == {"data/keys.py", "src/a.py"}
    store = Store(database_path(folder, cache))
    restricted = service(lambda path: path.startswith("data/"))
    if is_late:
        embed_missing(store, folder, WalkRules(), restricted)
    else:
        Update(store, folder, WalkRules(), restricted).run()
    store.close()
    left = dump(folder, cache)
    assert {row[0] for row in left["vectors"]} == {"src/a.py"}
    assert left["problems"] == []
    connection, _ = open_reading(database_path(folder, cache))
    cursor = cursor_of(connection)
    counts = [cursor.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in ("vectors", "nearest")]
    connection.close()
    assert counts == [len(left["vectors"])] * 2


def test_late_vectors_pass_over_files_that_changed(folder: Path, cache: Path) -> None:
    """Text that is no longer on the disk is left to the next pass; the loop ends."""
    index(folder, cache)
    (folder / "p0/f0.py").write_text(module("walrus"))
    (folder / "p0/f3.py").unlink()
    store = Store(database_path(folder, cache))
    assert embed_missing(store, folder, WalkRules(), HashEmbedder()) is None
    store.close()
    index(folder, cache, embedder=HashEmbedder())
    assert dump(folder, cache) == fresh(folder, cache, embedder=HashEmbedder())


def test_switching_branches_reuses_vectors(folder: Path, cache: Path) -> None:
    """Bug B97: the right answer after each switch, and no text is embedded twice."""
    embedder = HashEmbedder()
    old, new = "def old_api():\n    return 1\n", "def new_api():\n    return 2\n"
    (folder / "api.py").write_text(old)
    index(folder, cache, embedder=embedder)
    (folder / "api.py").write_text(new)
    index(folder, cache, embedder=embedder)
    embedded = embedder.n_texts
    reader = IndexReader(folder, cache, embedder)
    for n in range(20):
        (folder / "api.py").write_text(old if n % 2 == 0 else new)
        index(folder, cache, embedder=embedder, paths=["api.py"])
        here, gone = ("old_api", "new_api") if n % 2 == 0 else ("new_api", "old_api")
        assert reader.definitions([here])
        assert not reader.definitions([gone])
        assert reader.search(Query(here)).files[0].path == "api.py"
    assert embedder.n_texts == embedded
    reader.close()


def test_a_stopped_pass_keeps_what_it_did(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping takes effect after a file; the next pass does the rest."""
    calls = iter(range(100))
    result = index(folder, cache, stop=lambda: next(calls) >= 3)
    assert result.stopped
    assert len(dump(folder, cache)["files"]) == 4
    assert index(folder, cache).n_written == 5
    assert dump(folder, cache) == fresh(folder, cache)


def test_progress_ends_at_the_total(folder: Path, cache: Path) -> None:
    """Monotone, and 100 % at the end, also when there is nothing to do."""
    for _ in range(2):
        seen: list[tuple[str, int, int]] = []
        index(folder, cache, on_progress=lambda *now, seen=seen: seen.append(now))
        done = [now[1] for now in seen if now[0] == "indexing"]
        assert done == sorted(done)
        assert seen[-1][1] == seen[-1][2]


def test_prepared_files_say_what_they_are(tmp_path: Path) -> None:
    """New, unchanged or skipped: one of the three."""
    folder = write_tree(tmp_path / "w", {"a.py": "x = 1\n", "b.bin": b"\x00"})
    one, texts = prepare.prepare_file(folder, WalkRules(), prepare.Task("a.py", 6))
    assert one.rows is not None
    assert set(texts) == {chunk.vector_key for chunk in one.rows.chunks}
    again, _ = prepare.prepare_file(folder, WalkRules(), prepare.Task("a.py", 6, one.rows.content_hash))
    assert again.unchanged is not None
    binary, _ = prepare.prepare_file(folder, WalkRules(), prepare.Task("b.bin", 1))
    assert binary.skip is SkipReason.BINARY
    gone, _ = prepare.prepare_file(folder, WalkRules(), prepare.Task("c.py", 1))
    assert gone == Prepared("c.py", skip=SkipReason.GONE)
    assert isinstance(next(iter(real_walk(folder, WalkRules()))), Found)
