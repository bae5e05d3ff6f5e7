"""The vector side of search: stored as int8, compared exactly, by sqlite-vec or by numpy over a copy in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from haversack_index.database import Cursor
from haversack_index.types import Array

# Up to here sqlite-vec's scan needs no copy in memory and takes a few milliseconds (16 ms for 10,000 of 256 numbers);
# beyond it numpy over bit codes with an exact second look is faster (8 ms for 100,000) and misses nothing measurable.
TABLE_LIMIT = 5_000
# Candidates of the bit codes that get the exact second look, per neighbour asked for: 8 gave a recall of 0.998 or more.
RESCORED_PER_NEIGHBOUR = 8
# Chunks unknown to the copy that are looked up one by one, at 5 microseconds each; beyond it all are read again.
REFRESH_LIMIT = 2_000
# sqlite-vec refuses to return more.
MAX_NEIGHBOURS = 4_096


class BadVectorsError(Exception):
    """An embedder's answer that must not be stored or compared; the text is for the user."""


def quantise(vectors: Array, dim: int, count: int) -> list[bytes]:
    """Rows as int8, each scaled by its own largest number, which cosine does not mind.

    BadVectorsError: wrong count, wrong size, NaN or infinity.
    """
    array = np.asarray(vectors, np.float32)
    if array.ndim != 2 or array.shape[0] != count:
        got = array.shape[0] if array.ndim else 0
        raise BadVectorsError(f"The embedding model returned {got} vectors for {count} texts; vectors are off.")
    if array.shape[1] != dim:
        raise BadVectorsError(
            f"The embedding model returned vectors of size {array.shape[1]}, expected {dim}; vectors are off."
        )
    if not np.isfinite(array).all():
        raise BadVectorsError("The embedding model returned vectors with NaN or infinity; vectors are off.")
    largest = np.abs(array).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.rint(array * (127.0 / np.where(largest > 0, largest, 1.0))).astype(np.int8)
    return [row.tobytes() for row in scaled]


def unit(vector: Array, dim: int) -> Array:
    """A query vector as float32 of length 1. BadVectorsError when it is not one."""
    array = np.asarray(vector, np.float32).reshape(-1)
    quantise(array.reshape(1, -1), dim, 1)
    return array / max(float(np.linalg.norm(array)), 1e-12)


def nearest(cursor: Cursor, query: Array, limit: int) -> list[tuple[int, float]]:
    """(chunk id, cosine), nearest first, from the vector table. `query` is of unit length."""
    code = quantise(query.reshape(1, -1), query.shape[0], 1)[0]
    if not any(code):
        return []
    rows = cursor.execute(
        "SELECT chunk_id, distance FROM nearest WHERE vector MATCH vec_int8(?) AND k=? ORDER BY distance",
        (code, min(limit, MAX_NEIGHBOURS)),
    )
    return [(row[0], 1.0 - cast("float", row[1])) for row in rows]


def cosines(cursor: Cursor, query: Array, chunk_ids: Sequence[int]) -> dict[int, float]:
    """Exact cosine of the given chunks; chunks without a vector are left out."""
    numbers = ",".join(map(str, map(int, chunk_ids)))
    sql = f"SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key WHERE c.id IN ({numbers})"
    ids, rows = _arrays(cursor.execute(sql).fetchall(), query.shape[0])
    return dict(zip(ids.tolist(), _cosine(rows, query).tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Copy:
    generation: int
    embedder: str
    ids: NDArray[np.int64]
    rows: NDArray[np.int8]
    codes: NDArray[np.uint64]
    order: NDArray[np.int64]  # positions by rising id


class VectorCopy:
    """All vectors of one database in memory, brought up to date when the generation moves. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copy: _Copy | None = None

    def nearest(
        self, cursor: Cursor, query: Array, limit: int, generation: int, embedder: str
    ) -> list[tuple[int, float]]:
        """As the function of the same name, without the extension: bit codes choose, exact cosine decides."""
        with self._lock:
            copy = self._copy
            if copy is None or (copy.generation, copy.embedder) != (generation, embedder):
                old = copy if copy is not None and copy.embedder == embedder and copy.generation < generation else None
                copy = _load(cursor, generation, embedder, query.shape[0], old)
                self._copy = copy
        if not copy.ids.size or not query.any():
            return []
        chosen = np.arange(copy.ids.size)
        wanted = limit * RESCORED_PER_NEIGHBOUR
        if copy.ids.size > 2 * wanted:
            distance = np.bitwise_count(copy.codes ^ _codes(query.reshape(1, -1))).sum(axis=1)
            chosen = np.argpartition(distance, wanted)[:wanted]
        values = _cosine(copy.rows[chosen], query)
        best = np.argsort(-values, kind="stable")[:limit]
        return [(int(copy.ids[chosen[i]]), float(values[i])) for i in best]

    def cosines(
        self, query: Array, chunk_ids: Sequence[int], generation: int, embedder: str
    ) -> dict[int, float] | None:
        """As the function of the same name; None when there is no copy of this generation."""
        copy = self._copy
        if copy is None or (copy.generation, copy.embedder) != (generation, embedder) or not copy.ids.size:
            return None
        ids = np.unique(np.fromiter(chunk_ids, np.int64, len(chunk_ids)))
        places = np.searchsorted(copy.ids, ids, sorter=copy.order)
        chosen = copy.order[np.minimum(places, copy.ids.size - 1)]
        chosen = chosen[copy.ids[chosen] == ids]
        return dict(zip(copy.ids[chosen].tolist(), _cosine(copy.rows[chosen], query).tolist(), strict=True))


def _load(cursor: Cursor, generation: int, embedder: str, dim: int, old: _Copy | None) -> _Copy:
    """All vectors; with an older copy only those of chunks it does not know, as a chunk never changes its text."""
    if old is None:
        return _load_all(cursor, generation, embedder, dim)
    live = np.fromiter((row[0] for row in cursor.execute("SELECT id FROM chunks")), np.int64)
    fresh = live[~np.isin(live, old.ids)]
    if fresh.size > REFRESH_LIMIT:
        return _load_all(cursor, generation, embedder, dim)
    sql = "SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key WHERE c.id=?"
    found = [row for chunk_id in fresh for row in cursor.execute(sql, (int(chunk_id),)).fetchall()]
    kept = np.isin(old.ids, live)
    ids, rows = _arrays(found, dim)
    all_ids = np.concatenate([old.ids[kept], ids])
    return _Copy(
        generation,
        embedder,
        all_ids,
        np.concatenate([old.rows[kept], rows]),
        np.concatenate([old.codes[kept], _codes(rows)]),
        np.argsort(all_ids),
    )


def _load_all(cursor: Cursor, generation: int, embedder: str, dim: int) -> _Copy:
    sql = "SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key ORDER BY c.id"
    ids, rows = _arrays(cursor.execute(sql).fetchall(), dim)
    return _Copy(generation, embedder, ids, rows, _codes(rows), np.argsort(ids))


def _arrays(found: Sequence[tuple[Any, ...]], dim: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    ids = np.array([row[0] for row in found], np.int64)
    return ids, np.frombuffer(b"".join(row[1] for row in found), np.int8).reshape(len(found), dim)


def _codes(rows: NDArray[Any]) -> NDArray[np.uint64]:
    bits = np.packbits(rows > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(np.uint64)


def _cosine(rows: NDArray[np.int8], query: Array) -> Array:
    values = rows.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", values, values))
    return np.asarray((values @ query) / np.where(norms > 0, norms, 1.0), np.float32)
