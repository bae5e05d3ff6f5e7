"""The reading side: symbols, references, paths, status."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from indexing import HashEmbedder, index, module, write_tree

from haversack_index.database import cursor_of, database_path
from haversack_index.reader import IndexReader
from haversack_index.store import Store
from haversack_index.types import IndexState, Query

CONTEXT = '''"""Contexts."""
import os
from app.base import Base


class Context(Base):
    """Holds a call."""

    def invoke(self, callback):
        return callback(self)


def invoke(ctx):
    return Context().invoke(ctx)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "src/app/context.py": CONTEXT,
        "src/app/base.py": "class Base:\n    pass\n\n\nclass CONTEXT:\n    pass\n",
        "src/app/UserController.ts": "export class UserController { list() { return []; } }\n",
        "lib/context.py": "VALUE = 1\n",
        "README.md": "# App\n\nText.\n",
    }
    return write_tree(tmp_path / "w", files)


@pytest.fixture
def reader(folder: Path, tmp_path: Path) -> IndexReader:
    index(folder, tmp_path / "c")
    return IndexReader(folder, tmp_path / "c")


def test_definitions_prefer_the_exact_case(reader: IndexReader) -> None:
    """Another case is only asked for when the exact one is not there."""
    assert [symbol.name for symbol in reader.definitions(["Context"])] == ["Context"]
    assert {symbol.name for symbol in reader.definitions(["context"])} == {"Context", "CONTEXT"}
    found = reader.definitions(["Context"])[0]
    assert (found.span.path, found.line) == ("src/app/context.py", 5)
    assert found.span.start <= found.line < found.span.end


def test_who_defines_a_name_is_told_while_few_do(tmp_path: Path) -> None:
    """Each file once, in this very case; a name that more files define than asked for is left out."""
    files = {f"m{n}.py": "def common():\n    pass\n\n\ndef common():\n    pass\n" for n in range(3)}
    folder = write_tree(tmp_path / "w", {**files, "own.py": "class Own:\n    pass\n"})
    index(folder, tmp_path / "c")
    reader = IndexReader(folder, tmp_path / "c")
    names = ["common", "Own", "own", "nobody"]
    assert reader.definers(names, 2) == {"Own": {"own.py"}}
    assert reader.definers(names, 3) == {"common": set(files), "Own": {"own.py"}}


def test_a_qualified_name_asks_for_the_one_inside(reader: IndexReader) -> None:
    """`Context.invoke` is the method; a container that is not there does not hide what is."""
    assert [symbol.container for symbol in reader.definitions(["Context.invoke"])] == [("Context",)]
    assert len(reader.definitions(["invoke"])) == 2
    assert len(reader.definitions(["Elsewhere::invoke"])) == 2
    assert len(reader.definitions(["invoke", "Context", "Base"], limit=2)) == 2


@pytest.mark.parametrize("name", ["", ".", "no such", "x" * 10_000, "\ud800", "'; DROP TABLE files"])
def test_odd_names_find_nothing(reader: IndexReader, name: str) -> None:
    """Whatever a question holds is looked up as a name, never run."""
    assert reader.definitions([name]) == ()
    assert reader.references([name]) == ()
    assert reader.symbols(name) == ()
    assert reader.file(name) is None
    assert len(reader.files()) == 5


def test_references_say_where_a_name_is_used(reader: IndexReader) -> None:
    """Calls with the definition they stand in, by path and line, up to the limit."""
    found = reader.references(["Context"])
    assert ("src/app/context.py", 13, "invoke") in [(one.path, one.line, one.within) for one in found]
    assert len(reader.references(["invoke", "Context", "Base"], limit=1)) == 1


def test_symbols_and_imports_of_a_file(reader: IndexReader) -> None:
    """In the order of the file, nested ones after what holds them."""
    assert [symbol.name for symbol in reader.symbols("src/app/context.py")] == ["Context", "invoke", "invoke"]
    assert any("app.base" in name for name in reader.imports("src/app/context.py"))
    assert reader.imports("README.md") == ()


def test_files_and_their_records(reader: IndexReader, folder: Path) -> None:
    """Size, lines, language and hash as they are on the disk."""
    assert [file.path for file in reader.files()] == sorted(file.path for file in reader.files())
    record = reader.file("src/app/context.py")
    assert record is not None
    status = (folder / "src/app/context.py").stat()
    assert (record.size, record.mtime_ns, record.language) == (status.st_size, status.st_mtime_ns, "python")
    assert (record.n_lines, record.generation) == (14, reader.generation)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("src/app/context.py", "src/app/context.py"),
        ("./src/app/context.py", "src/app/context.py"),
        ("src\\app\\context.py", "src/app/context.py"),
        ("app/context.py", "src/app/context.py"),
        ("context.py", "lib/context.py"),
        ("context", "lib/context.py"),
        ("usercontroller", "src/app/UserController.ts"),
        ("usrctrl", "src/app/UserController.ts"),
        ("readme", "README.md"),
        ("app/UserC", "src/app/UserController.ts"),
        ("srcbase", "src/app/base.py"),
    ],
)
def test_paths_are_matched_from_whole_to_letters(reader: IndexReader, text: str, first: str) -> None:
    """Whole path, end of path, name, stem, part of a name, letters in order."""
    assert reader.paths_matching(text)[0] == first


def test_paths_that_do_not_match(reader: IndexReader) -> None:
    """Nothing, blanks, regular expressions and unknown letters give an empty list; the limit holds."""
    assert [reader.paths_matching(text) for text in ("", "  ", "./", "zzqx", ".*", "(", "../..")] == [()] * 7
    assert len(reader.paths_matching("context", limit=1)) == 1


def test_status_counts_and_is_ready_after_a_probe(reader: IndexReader) -> None:
    """Ready means that the pass ended and a word known to be there is found."""
    status = reader.status()
    assert (status.state, status.n_files, status.problems) == (IndexState.READY, 5, ())
    assert status.done == status.total == 5
    assert status.n_chunks >= 5
    assert status.n_symbols >= 7


def test_an_index_that_cannot_answer_is_not_ready(reader: IndexReader, folder: Path, tmp_path: Path) -> None:
    """Rows without words, the fault behind "ready, but nothing is found", are seen by the probe."""
    store = Store(database_path(folder, tmp_path / "c"))
    with store.batch() as cursor:
        cursor.execute("DELETE FROM words")
    store.close()
    status = reader.status()
    assert status.state is IndexState.DEGRADED
    assert "probe" in status.problems[0]


def test_nothing_indexed_of_something_is_a_problem(tmp_path: Path) -> None:
    """A tree whose every file is skipped says so, with the reasons counted; an empty folder is simply ready."""
    folder = write_tree(tmp_path / "w", {".haversackignore": "*\n", "a.py": "x = 1\n", "b.py": "y = 1\n"})
    index(folder, tmp_path / "c")
    status = IndexReader(folder, tmp_path / "c").status()
    assert status.state is IndexState.DEGRADED
    assert "No file was indexed" in status.problems[0]
    assert status.skipped == {"haversack-ignored": 3}
    (tmp_path / "empty").mkdir()
    index(tmp_path / "empty", tmp_path / "c")
    assert IndexReader(tmp_path / "empty", tmp_path / "c").status().state is IndexState.READY


def test_without_an_index_everything_is_empty(folder: Path, tmp_path: Path) -> None:
    """No database is a state like any other, and reading makes none."""
    reader = IndexReader(folder, tmp_path / "none")
    assert (reader.generation, reader.files(), reader.definitions(["Context"]), reader.paths_matching("a")) == (
        0,
        (),
        (),
        (),
    )
    assert reader.status().state is IndexState.SCANNING
    assert not (tmp_path / "none").exists()
    index(folder, tmp_path / "none")
    assert reader.status().state is IndexState.READY
    reader.close()


def test_a_reader_cannot_write(reader: IndexReader) -> None:
    """The connection is for reading only, so a mistake here cannot hurt the index."""
    connection = reader._open().connection  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(Exception, match=r"readonly|read-only|query"):
        cursor_of(connection).execute("DELETE FROM files")


def test_threads_have_connections_of_their_own(reader: IndexReader) -> None:
    """Many threads read at once; closing the reader closes them all, and it opens again when asked."""
    failures: list[BaseException] = []

    def look() -> None:
        try:
            for _ in range(20):
                assert reader.search(Query("context")).files
                assert reader.definitions(["Context"])
                assert reader.status().state is IndexState.READY
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    reader.close()
    assert reader.definitions(["Context"])
    reader.close()


def test_vectors_are_counted(folder: Path, tmp_path: Path) -> None:
    """Status names the model and how many chunks have a vector of it."""
    write_tree(folder, {"src/more.py": module("zebra")})
    index(folder, tmp_path / "c", embedder=HashEmbedder())
    status = IndexReader(folder, tmp_path / "c", HashEmbedder()).status()
    assert (status.embedder, status.n_vectors) == ("hash:32", status.n_chunks)


def test_without_meaning_no_embedder_is_asked(tmp_path: Path) -> None:
    """For questions that may not reach the service; words still answer."""
    write_tree(tmp_path / "ws", {"a.py": "def add_item():\n    pass\n"})
    index(tmp_path / "ws", tmp_path / "c", embedder=HashEmbedder())
    asked: list[str] = []
    embedder = HashEmbedder()
    embedder.embed_query = lambda text: asked.append(text) or HashEmbedder().embed_query(text)  # type: ignore[method-assign]
    reader = IndexReader(tmp_path / "ws", tmp_path / "c", embedder)
    assert reader.search(Query("add_item", terms=("add_item",), by_meaning=False)).files
    assert not asked
    reader.search(Query("add_item", terms=("add_item",)))
    assert asked == ["add_item"]


def test_copies_are_found_by_their_bytes(tmp_path: Path) -> None:
    write_tree(tmp_path / "ws", {"a.py": "x = 1\n", "b.py": "x = 1\n", "c.py": "x = 2\n"})
    index(tmp_path / "ws", tmp_path / "c")
    reader = IndexReader(tmp_path / "ws", tmp_path / "c")
    record = reader.file("a.py")
    assert record is not None
    assert {path for _, path in reader.copies([record.content_hash, "none"])} == {"a.py", "b.py"}
    assert reader.copies([]) == ()
