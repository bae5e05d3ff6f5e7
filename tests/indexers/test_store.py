"""The database: where it lies, who may read it, and what happens to a damaged or foreign one."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import apsw
import pytest
from indexing import HashEmbedder, dump, index, module, write_tree

from haversack_index import database
from haversack_index.database import database_path, open_reading
from haversack_index.reader import IndexReader
from haversack_index.store import Store, StoreReplacedError
from haversack_index.types import IndexState, Query, Tier


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "w", {"a.py": module("zebra"), "b.py": module("heron")})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "c"


def test_folders_of_one_name_have_databases_of_their_own(tmp_path: Path) -> None:
    """The real path decides, so a link to a folder shares its index and a namesake does not."""
    one, other = tmp_path / "x" / "app", tmp_path / "y" / "app"
    one.mkdir(parents=True)
    other.mkdir(parents=True)
    (tmp_path / "link").symlink_to(one)
    assert database_path(one, tmp_path) != database_path(other, tmp_path)
    assert database_path(tmp_path / "link", tmp_path) == database_path(one, tmp_path)
    assert database_path(one, tmp_path).name.startswith("app-")


def test_nobody_else_may_read_the_index(folder: Path, cache: Path) -> None:
    """Mode 0700 and 0600 whatever the umask, also for what was looser before."""
    cache.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        index(folder, cache)
    finally:
        os.umask(old)
    path = database_path(folder, cache)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    Store(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _overwrite_the_middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(8192))


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"this is not a database at all" * 100)


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def _a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "target")


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _another_format(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version=999")
    connection.close()


@pytest.mark.parametrize(
    "damage", [_overwrite_the_middle, _not_a_database, _a_folder, _a_link, _a_pipe, _another_format]
)
def test_a_damaged_index_is_set_aside_and_rebuilt(folder: Path, cache: Path, damage: object) -> None:
    """Bug B87: noise in the middle, another file, a folder in its place, another format: one line, then it works."""
    index(folder, cache)
    fresh = dump(folder, cache)
    path = database_path(folder, cache)
    damage(path)  # pyright: ignore[reportCallIssue]
    reader = IndexReader(folder, cache)
    assert reader.search(Query("zebra")).files[0].path == "a.py"
    index(folder, cache)
    assert dump(folder, cache) == fresh
    assert os.path.lexists(f"{path}.damaged")
    status = reader.status()
    assert status.state is IndexState.DEGRADED
    assert len(status.problems) == 1
    assert "rebuilt" in status.problems[0]
    assert reader.search(Query("zebra")).tier is Tier.KEYWORD
    index(folder, cache)
    assert reader.status().state is IndexState.READY
    reader.close()


def test_a_link_in_the_place_of_an_index_is_not_followed(folder: Path, cache: Path, tmp_path: Path) -> None:
    """The file a link leads to keeps its bytes and its mode, and is what no question is answered from."""
    index(folder, cache)
    path = database_path(folder, cache)
    target = tmp_path / "target"
    path.rename(target)
    target.chmod(0o644)
    before = target.read_bytes()
    path.symlink_to(target)
    reader = IndexReader(folder, cache)
    assert reader.search(Query("zebra")).tier is Tier.COUNT
    reader.close()
    Store(path).close()
    assert not path.is_symlink()
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (before, 0o644)


def test_damage_is_looked_for_when_the_writer_opens(folder: Path, cache: Path) -> None:
    """A page of noise is found before anything is read from it or written around it."""
    write_tree(folder, {f"f{i}.py": module(f"topic{i}", 8) for i in range(60)})
    index(folder, cache)
    _overwrite_the_middle(database_path(folder, cache))
    store = Store(database_path(folder, cache))
    store.close()
    assert "damaged" in store.recovered


def test_damage_found_in_the_middle_of_a_pass_is_repaired_by_it(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that goes bad after the check at the start costs one rebuild, not the session."""
    index(folder, cache)
    whole, failures = Store.files, [apsw.CorruptError("database disk image is malformed")]

    def files(store: Store) -> object:
        if failures:
            raise failures.pop()
        return whole(store)

    monkeypatch.setattr(Store, "files", files)
    result = index(folder, cache)
    assert result.n_written == 2
    assert "rebuilt" in result.problems[0]


def test_a_store_replaced_under_its_writer_is_noticed(folder: Path, cache: Path) -> None:
    """A writer never goes on writing to a file that has no name any more."""
    index(folder, cache)
    store = Store(database_path(folder, cache))
    store.path.unlink()
    with pytest.raises(StoreReplacedError):
        store.set_meta({"x": "y"})
    store.close()


def test_readers_follow_a_rebuilt_database(folder: Path, cache: Path) -> None:
    """After the file is replaced an open reader answers from the new one."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    assert reader.search(Query("zebra")).files
    database.remove(database_path(folder, cache))
    (folder / "a.py").write_text(module("walrus"))
    index(folder, cache)
    assert reader.search(Query("walrus")).files[0].path == "a.py"
    assert reader.definitions(["zebra_step_0"]) == ()
    assert [file.path for file in reader.files()] == ["a.py", "b.py"]
    reader.close()


def test_searches_go_on_while_another_process_holds_the_write_lock(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug B30: readers see the last state at once; the writer waits for the lock and then succeeds."""
    index(folder, cache)
    other = apsw.Connection(str(database_path(folder, cache)))
    other.execute("BEGIN IMMEDIATE")
    (folder / "a.py").write_text(module("walrus"))
    failures: list[BaseException] = []

    def write() -> None:
        try:
            index(folder, cache)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    reader = IndexReader(folder, cache)
    slowest = 0.0
    for _ in range(10):
        start = time.perf_counter()
        assert reader.search(Query("zebra")).files[0].path == "a.py"
        slowest = max(slowest, time.perf_counter() - start)
        time.sleep(0.05)
    assert writer.is_alive()
    other.execute("COMMIT")
    writer.join(10)
    assert failures == []
    assert slowest < 0.3
    assert reader.search(Query("walrus")).files[0].path == "a.py"
    reader.close()


def test_two_writers_take_turns(folder: Path, cache: Path) -> None:
    """Two processes may index one folder: each waits for the other, and the result is one sound index."""
    write_tree(folder, {f"f{i}.py": module(f"topic{i}") for i in range(30)})
    failures: list[BaseException] = []

    def write() -> None:
        try:
            index(folder, cache, embedder=HashEmbedder())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    found = dump(folder, cache)
    assert (len(found["files"]), found["problems"]) == (32, [])


def test_the_generation_moves_only_when_an_answer_could_change(folder: Path, cache: Path) -> None:
    """A pass without changes, or a touched file, keeps what readers have cached."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    before = reader.generation
    os.utime(folder / "a.py")
    index(folder, cache)
    assert reader.generation == before
    (folder / "a.py").write_text(module("walrus"))
    index(folder, cache)
    assert reader.generation == before + 1
    reader.close()


def test_a_failing_batch_changes_nothing(folder: Path, cache: Path) -> None:
    """Everything one batch writes is there together or not at all."""
    index(folder, cache)
    before = dump(folder, cache)
    store = Store(database_path(folder, cache))
    with pytest.raises(apsw.ConstraintError), store.batch() as cursor:
        cursor.execute("DELETE FROM chunks; INSERT INTO files(path) VALUES('half.py')")
    store.close()
    assert dump(folder, cache) == before


def test_another_model_drops_the_vectors_and_keeps_the_words(folder: Path, cache: Path) -> None:
    """Vectors of two models are never mixed; searches go on by words until the new ones are there."""
    index(folder, cache, embedder=HashEmbedder(name="old"))
    store = Store(database_path(folder, cache))
    store.set_embedder("new:16", 16)
    store.close()
    reader = IndexReader(folder, cache, HashEmbedder(name="old"))
    result = reader.search(Query("zebra"))
    assert (result.tier, result.files[0].path) == (Tier.KEYWORD, "a.py")
    assert reader.status().n_vectors == 0
    reader.close()


def test_vectors_of_text_that_left_are_kept_within_bounds(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old vectors serve branch switches, but the newest few only."""
    monkeypatch.setattr("haversack_index.store.SPARE_VECTORS", 0)
    for i in range(6):
        (folder / "a.py").write_text(module(f"walrus{i}", 1))
        index(folder, cache, embedder=HashEmbedder())
    connection, _ = open_reading(database_path(folder, cache))
    row = database.cursor_of(connection).execute("SELECT count(*) FROM vectors").fetchone()
    connection.close()
    assert row is not None
    assert row[0] <= 2 + 2
