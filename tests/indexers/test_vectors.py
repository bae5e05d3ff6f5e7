"""Vectors: what is refused, what is near, with and without the vector extension."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
import pytest
import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]
from indexing import HashEmbedder, dump, index, module, write_tree

from haversack_index import vectors
from haversack_index.database import cursor_of, database_path, open_reading
from haversack_index.reader import IndexReader
from haversack_index.types import Array, IndexState, Query, Tier
from haversack_index.vectors import BadVectorsError, VectorCopy, quantise, unit

ROOM = np.random.default_rng(7)


def test_int8_keeps_the_cosine() -> None:
    """Numbers scaled row by row lose under one hundredth of a cosine."""
    rows = ROOM.standard_normal((50, 64)).astype(np.float32)
    codes = np.frombuffer(b"".join(quantise(rows, 64, 50)), np.int8).reshape(50, 64).astype(np.float32)
    cosine = (rows * codes).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(codes, axis=1)
    assert cosine.min() > 0.99


@pytest.mark.parametrize(
    ("rows", "count", "message"),
    [
        (np.ones((2, 3)), 2, "size 3, expected 4"),
        (np.ones((1, 4)), 2, "1 vectors for 2 texts"),
        (np.empty((0, 4)), 2, "0 vectors for 2 texts"),
        (np.array([[1.0, np.nan, 0, 0]]), 1, "NaN"),
        (np.array([[1.0, np.inf, 0, 0]]), 1, "infinity"),
        (np.ones(4), 1, "4 vectors for 1 texts"),
    ],
)
def test_wrong_vectors_are_refused_with_both_numbers(rows: Array, count: int, message: str) -> None:
    """Bug B27: wrong size, wrong count and NaN name what came and what was expected."""
    with pytest.raises(BadVectorsError, match=message):
        quantise(rows, 4, count)


def test_a_query_vector_is_checked_too() -> None:
    """A model that changed under the server is noticed at the question."""
    with pytest.raises(BadVectorsError):
        unit(np.ones(3, np.float32), 4)
    assert np.linalg.norm(unit(np.full(4, 3.0, np.float32), 4)) == pytest.approx(1.0)


class WrongSize(HashEmbedder):
    """Says one size, gives another."""

    def embed_documents(self, texts: list[str]) -> Array:
        self.n_texts += len(texts)
        return np.ones((len(texts), 3), np.float32)


def test_a_wrong_size_stops_vectors_and_not_the_index(tmp_path: Path) -> None:
    """Bug B27: the message names both numbers, nothing is stored, and words still answer."""
    folder = write_tree(tmp_path / "w", {"a.py": module("zebra")})
    embedder = WrongSize(dim=32)
    result = index(folder, tmp_path / "c", embedder=embedder)
    assert result.failure is not None
    assert result.failure.lasting
    reader = IndexReader(folder, tmp_path / "c", embedder)
    status = reader.status()
    assert (status.n_vectors, status.state) == (0, IndexState.DEGRADED)
    assert any("size 3, expected 32" in problem for problem in status.problems)
    found = reader.search(Query("zebra"))
    assert (found.tier, [file.path for file in found.files]) == (Tier.KEYWORD, ["a.py"])
    reader.close()


def test_deleted_files_leave_no_vectors_in_the_way(tmp_path: Path) -> None:
    """Bug B26: vectors go with their chunks, so the nearest five are five that exist."""
    folder = write_tree(tmp_path / "w", {f"f{i}.py": module("zebra", 1) + f"\n# {i}\n" for i in range(10)})
    embedder = HashEmbedder()
    index(folder, tmp_path / "c", embedder=embedder)
    for i in range(5):
        (folder / f"f{i}.py").unlink()
    index(folder, tmp_path / "c", embedder=embedder)
    connection, _ = open_reading(database_path(folder, tmp_path / "c"))
    cursor = cursor_of(connection)
    found = vectors.nearest(cursor, embedder.embed_query("zebra"), 5)
    live = {row[0] for row in cursor.execute("SELECT id FROM chunks").fetchall()}
    assert len(found) == 5
    assert {chunk_id for chunk_id, _ in found} <= live
    copied = VectorCopy().nearest(cursor, embedder.embed_query("zebra"), 5, 1, embedder.id)
    assert sorted(i for i, _ in copied) == sorted(i for i, _ in found)
    connection.close()


def test_the_copy_in_memory_finds_what_the_table_finds(tmp_path: Path) -> None:
    """Both tiers compare the same numbers; the copy follows edits without being loaded anew."""
    embedder = HashEmbedder(dim=64)
    folder = write_tree(tmp_path / "w", {f"f{i}.py": module(f"topic{i}", 3) for i in range(40)})
    index(folder, tmp_path / "c", embedder=embedder)
    copy = VectorCopy()
    for generation in range(1, 4):
        connection, _ = open_reading(database_path(folder, tmp_path / "c"))
        cursor = cursor_of(connection)
        query = embedder.embed_query("carry topic7 to place 1")
        table = vectors.nearest(cursor, query, 10)
        memory = copy.nearest(cursor, query, 10, generation, embedder.id)
        assert [round(value, 2) for _, value in memory] == [round(value, 2) for _, value in table]
        exact = vectors.cosines(cursor, query, [chunk_id for chunk_id, _ in memory])
        assert [exact[chunk_id] for chunk_id, _ in memory] == pytest.approx([value for _, value in memory])
        numbers = [chunk_id for chunk_id, _ in memory]
        assert copy.cosines(query, [*numbers, 10**9], generation, embedder.id) == exact
        assert copy.cosines(query, numbers, generation + 1, embedder.id) is None
        connection.close()
        write_tree(folder, {f"f{generation}.py": module(f"fresh{generation}"), f"g{generation}.py": module("topic7")})
        index(folder, tmp_path / "c", embedder=embedder)


def test_bit_codes_miss_next_to_nothing() -> None:
    """Choosing by bit codes and looking again exactly keeps at least 98 of 100 true neighbours."""
    centres = np.repeat(ROOM.standard_normal((60, 256)), 100, 0) * 1.5
    rows = np.asarray(ROOM.standard_normal((6_000, 256)) + centres, np.float32)
    codes = np.frombuffer(b"".join(quantise(rows, 256, len(rows))), np.int8).reshape(rows.shape)
    ids = np.arange(len(rows))
    copy = VectorCopy()
    copy._copy = vectors._Copy(1, "x", ids, codes, vectors._codes(codes), ids)  # pyright: ignore[reportPrivateUsage]
    hits = 0
    for i in range(0, 200, 10):
        query = unit(np.asarray(rows[i] + 0.1, np.float32), 256)
        truth = np.argsort(-(rows @ query) / np.linalg.norm(rows, axis=1))[:50]
        found = copy.nearest(None, query, 50, 1, "x")  # pyright: ignore[reportArgumentType]
        hits += len({chunk_id for chunk_id, _ in found} & set(truth.tolist()))
    assert hits / (20 * 50) > 0.98


def test_no_vector_extension_is_one_line_and_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug B28: without extension loading hybrid search still answers, by comparing in memory, and says why."""
    folder = write_tree(tmp_path / "w", {f"f{i}.py": module(f"topic{i}") for i in range(5)})
    embedder = HashEmbedder()
    monkeypatch.setattr(sqlite_vec, "loadable_path", lambda: "/nowhere/vec0")
    index(folder, tmp_path / "c", embedder=embedder)
    reader = IndexReader(folder, tmp_path / "c", embedder)
    result = reader.search(Query("topic3"))
    assert result.tier is Tier.SCAN
    assert result.files[0].path == "f3.py"
    assert dict(result.files[0].hits[0].parts)["vector"] > 0
    assert [problem for problem in result.problems if "reinstall sqlite-vec" in problem]
    assert reader.status().n_vectors == 5
    reader.close()
    monkeypatch.undo()
    (folder / "f3.py").write_text(module("topic8"))
    index(folder, tmp_path / "c", embedder=embedder)
    assert dump(folder, tmp_path / "c")["problems"] == []
    reader = IndexReader(folder, tmp_path / "c", embedder)
    assert reader.search(Query("topic8")).tier is Tier.HYBRID
    assert reader.search(Query("topic8")).files[0].path == "f3.py"
    reader.close()


def test_an_index_made_with_the_extension_survives_a_writer_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table such a writer cannot touch is filled anew by the next one that can."""
    folder = write_tree(tmp_path / "w", {f"f{i}.py": module(f"topic{i}") for i in range(5)})
    embedder = HashEmbedder()
    index(folder, tmp_path / "c", embedder=embedder)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_vec, "loadable_path", lambda: "/nowhere/vec0")
        (folder / "f0.py").unlink()
        index(folder, tmp_path / "c", embedder=embedder)
    (folder / "f1.py").unlink()
    index(folder, tmp_path / "c", embedder=embedder)
    connection, _ = open_reading(database_path(folder, tmp_path / "c"))
    rows = cursor_of(connection).execute("SELECT count(*) FROM nearest").fetchone()
    connection.close()
    assert rows == (3,)
    assert dump(folder, tmp_path / "c")["problems"] == []


def test_extension_loading_is_switched_off_again(tmp_path: Path) -> None:
    """Nothing else can be loaded through SQL later."""
    folder = write_tree(tmp_path / "w", {"a.py": module("a")})
    index(folder, tmp_path / "c")
    connection, _ = open_reading(database_path(folder, tmp_path / "c"))
    with pytest.raises(apsw.Error, match="not authorized"):
        connection.execute("SELECT load_extension('x')")
    connection.close()
