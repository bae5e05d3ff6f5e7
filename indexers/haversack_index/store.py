"""Writing the index: what one file gives changes in one transaction, so a killed process leaves whole files behind.

The database is a cache: it may be killed, damaged or thrown away at any moment and must never answer wrongly.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from haversack_index import preparation
from haversack_index.database import (
    RECOVERED,
    Cursor,
    begin_writing,
    cursor_of,
    file_identity,
    get_meta,
    known_vectors,
    load_vector_extension,
    open_writing,
    set_aside,
    set_meta,
)

# Vectors of text that left the index are kept for branch switches, at most as many as this or as there are chunks.
SPARE_VECTORS = 20_000


class StoreReplacedError(Exception):
    """The database file is not the one that was opened: another process rebuilt it, or somebody deleted it."""


class ChunkRow(NamedTuple):
    """A chunk as stored. `terms` is ` word=count word=count `, `body` the same words repeated, for the word table."""

    start: int
    end: int
    kind: str
    heading: str
    names: str
    signature_end: int
    language: str
    length: int
    terms: str
    vector_key: bytes
    name_words: str
    body: str


@dataclass(frozen=True, slots=True)
class FileRows:
    """All rows of one file, ready to store. `racy`: changed so shortly before the read that its time proves nothing."""

    path: str
    content_hash: str
    size: int
    mtime_ns: int
    racy: bool
    language: str
    n_lines: int
    note: str
    imports: str
    path_words: str
    chunks: tuple[ChunkRow, ...]
    symbols: tuple[tuple[Any, ...], ...]
    refs: tuple[tuple[str, int, str], ...]
    vectors: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes])


class StoredFile(NamedTuple):
    """`is_outdated`: its rows were made by other rules than this process has, and are to be made again."""

    content_hash: str
    size: int
    mtime_ns: int
    racy: bool
    is_outdated: bool = False


class SkippedRow(NamedTuple):
    """A skipped path. `size` and `mtime_ns` are set when its content was the reason: it need not be read again."""

    path: str
    reason: str
    rule: str = ""
    size: int = 0
    mtime_ns: int = 0


class MissingVector(NamedTuple):
    chunk_id: int
    path: str
    content_hash: str
    start: int
    end: int
    heading: str
    vector_key: bytes


class Store:
    """The one writer of a database. Not for several threads; several processes take turns at batches."""

    def __init__(self, path: Path) -> None:
        """Open or create. A damaged or unknown file is set aside; `recovered` then says why.

        OSError or apsw.CantOpenError: there is no place to write.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # a cache folder of another owner is used as it is
            path.parent.chmod(0o700)
        self.path = path
        self._open()

    def _open(self) -> None:
        self._connection, self.recovered = open_writing(self.path)
        self._identity = file_identity(self.path)
        self.vector_problem = load_vector_extension(self._connection)

    def reopen(self, damaged: bool) -> None:
        """Go on with the file that has the name now; a damaged one is set aside first, and `recovered` says so."""
        self.close()
        if damaged:
            set_aside(self.path)
        self._open()
        if damaged:
            self.recovered = RECOVERED.format("damaged")

    def close(self) -> None:
        self._connection.close()

    def check(self) -> None:
        """StoreReplacedError when the file was replaced; what was written since then is lost, so start over."""
        if file_identity(self.path) != self._identity:
            raise StoreReplacedError(str(self.path))

    @contextmanager
    def batch(self) -> Generator[Cursor]:
        """One transaction, rolled back on any error."""
        self.check()
        cursor = cursor_of(self._connection)
        begin_writing(cursor)
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                with suppress(apsw.Error):
                    cursor.execute("ROLLBACK")
            raise

    def write(
        self,
        files: Sequence[FileRows] = (),
        delete: Sequence[str] = (),
        touch: Sequence[tuple[str, StoredFile]] = (),
        meta: Mapping[str, str] | None = None,
    ) -> int:
        """Replace `files`, remove `delete`, note new times of unchanged files; returns the generation after it.

        A file that another process stored meanwhile with the same content, by the same rules, is left alone. The
        generation moves on only when an answer could change.
        """
        with self.batch() as cursor:
            generation = int(get_meta(cursor, "generation") or 0)
            stored = _stored(cursor, [rows.path for rows in files])
            now = preparation.current()
            changed = [rows for rows in files if stored.get(rows.path) != (rows.content_hash, now)]
            same = [rows for rows in files if stored.get(rows.path) == (rows.content_hash, now)]
            gone = self._remove(cursor, [*delete, *(rows.path for rows in changed if rows.path in stored)])
            if changed or gone:
                generation += 1
                set_meta(cursor, {"generation": str(generation)})
            vec = self._vector_table(cursor)
            for rows in changed:
                _insert(cursor, rows, generation, vec)
            touches = [*touch, *((r.path, StoredFile(r.content_hash, r.size, r.mtime_ns, r.racy)) for r in same)]
            cursor.executemany(
                "UPDATE files SET size=?, mtime_ns=?, racy=? WHERE path=? AND content_hash=?",
                [(file.size, file.mtime_ns, int(file.racy), path, file.content_hash) for path, file in touches],
            )
            set_meta(cursor, meta or {})
        return generation

    def files(self) -> dict[str, StoredFile]:
        sql = "SELECT path, content_hash, size, mtime_ns, racy, preparation FROM files"
        rows = cursor_of(self._connection).execute(sql)
        now = preparation.current()
        return {row[0]: StoredFile(row[1], row[2], row[3], bool(row[4]), row[5] != now) for row in rows}

    def meta(self, key: str) -> str:
        return get_meta(cursor_of(self._connection), key)

    def set_meta(self, values: Mapping[str, str]) -> None:
        with self.batch() as cursor:
            set_meta(cursor, values)

    def skipped(self) -> dict[str, SkippedRow]:
        rows = cursor_of(self._connection).execute("SELECT path, reason, rule, size, mtime_ns FROM skipped")
        return {row[0]: SkippedRow(*row) for row in rows}

    def set_skipped(self, skipped: Iterable[SkippedRow], forget: Iterable[str] | None = None) -> None:
        """Note skipped paths, after forgetting those in `forget`, or all when it is None."""
        with self.batch() as cursor:
            if forget is None:
                cursor.execute("DELETE FROM skipped")
            else:
                cursor.executemany("DELETE FROM skipped WHERE path=?", [(path,) for path in forget])
            cursor.executemany("INSERT OR REPLACE INTO skipped VALUES(?,?,?,?,?)", list(skipped))

    # --- vectors ------------------------------------------------------------------------------------------------

    def set_embedder(self, embedder_id: str, dim: int) -> None:
        """Name the model whose vectors are stored; another one than before drops all vectors, never mixes them."""
        if (self.meta("embedder"), self.meta("dim")) == (embedder_id, str(dim)):
            return
        with self.batch() as cursor:
            cursor.execute("DELETE FROM vectors")
            if not self.vector_problem:
                cursor.execute("DROP TABLE IF EXISTS nearest")
            generation = int(get_meta(cursor, "generation") or 0) + 1
            values = {"embedder": embedder_id, "dim": str(dim), "nearest": "", "generation": str(generation)}
            set_meta(cursor, values)

    def known_vectors(self, keys: Sequence[bytes]) -> set[bytes]:
        return known_vectors(cursor_of(self._connection), keys)

    def missing_vectors(self, limit: int, after: int = 0) -> list[MissingVector]:
        """Chunks whose text has no vector yet, by id, from the one behind `after`."""
        rows = cursor_of(self._connection).execute(
            "SELECT c.id, f.path, f.content_hash, c.start, c.end, c.heading, c.vector_key"
            " FROM chunks c JOIN files f ON f.id=c.file_id LEFT JOIN vectors v ON v.vector_key=c.vector_key"
            " WHERE c.id>? AND v.vector_key IS NULL ORDER BY c.id LIMIT ?",
            (after, limit),
        )
        return [MissingVector(*row) for row in rows]

    def add_vectors(self, vectors: Mapping[bytes, bytes]) -> int:
        """Store vectors of chunks that are in the index already; returns the generation after it."""
        with self.batch() as cursor:
            # Made whole before the new rows are there, else they would be in it twice.
            whole = self._vector_table(cursor)
            generation = int(get_meta(cursor, "generation") or 0) + 1
            for key in vectors.keys() - known_vectors(cursor, list(vectors)):
                cursor.execute("INSERT INTO vectors VALUES(?,?,?)", (key, vectors[key], generation))
                if whole:
                    ids = cursor.execute("SELECT id FROM chunks WHERE vector_key=?", (key,)).fetchall()
                    _insert_nearest(cursor, [(row[0], vectors[key]) for row in ids])
            set_meta(cursor, {"generation": str(generation)})
        return generation

    def drop_vectors(self, paths: Iterable[str]) -> int:
        """Delete the vectors of these files, and those of text that no file has any more: nobody knows whose it was.

        Returns how many chunks had one; with none nothing is written.
        """
        sql = "SELECT c.id, c.vector_key FROM chunks c JOIN files f ON f.id=c.file_id"
        sql += " JOIN vectors v ON v.vector_key=c.vector_key WHERE f.path=?"
        reading = cursor_of(self._connection)
        rows = [row for path in paths for row in reading.execute(sql, (path,)).fetchall()]
        if not rows:
            return 0
        with self.batch() as cursor:
            if self._vector_table(cursor):
                cursor.executemany("DELETE FROM nearest WHERE chunk_id=?", [(chunk_id,) for chunk_id, _ in rows])
            cursor.executemany("DELETE FROM vectors WHERE vector_key=?", [(key,) for _, key in rows])
            cursor.execute("DELETE FROM vectors WHERE vector_key NOT IN (SELECT vector_key FROM chunks)")
            set_meta(cursor, {"generation": str(int(get_meta(cursor, "generation") or 0) + 1)})
        return len(rows)

    def prune_vectors(self) -> None:
        """Drop the oldest vectors of text that is no longer indexed, beyond what branch switches bring back."""
        with self.batch() as cursor:
            spare = "SELECT v.vector_key FROM vectors v WHERE NOT EXISTS"
            spare += " (SELECT 1 FROM chunks c WHERE c.vector_key=v.vector_key)"
            row = cursor.execute("SELECT count(*) FROM chunks").fetchone()
            keep = max(SPARE_VECTORS, row[0] if row is not None else 0)
            oldest = f"{spare} ORDER BY v.generation DESC LIMIT -1 OFFSET ?"
            cursor.execute(f"DELETE FROM vectors WHERE vector_key IN ({oldest})", (keep,))

    def _vector_table(self, cursor: Cursor) -> bool:
        """Whether the nearest-neighbour table can be written; makes it, or makes it whole again, when it can."""
        dim = int(get_meta(cursor, "dim") or 0)
        if not dim:
            return False
        if self.vector_problem:
            # Without the extension its table cannot be touched: mark it as behind, to be refilled by who can.
            set_meta(cursor, {"nearest": ""})
            return False
        if get_meta(cursor, "nearest") == "whole":
            return True
        cursor.execute("DROP TABLE IF EXISTS nearest")
        columns = f"chunk_id INTEGER PRIMARY KEY, vector int8[{dim}] distance_metric=cosine"
        cursor.execute(f"CREATE VIRTUAL TABLE nearest USING vec0({columns})")
        sql = "SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key"
        _insert_nearest(cursor, [(row[0], row[1]) for row in cursor.execute(sql).fetchall()])
        set_meta(cursor, {"nearest": "whole"})
        return True

    def _remove(self, cursor: Cursor, paths: Sequence[str]) -> bool:
        removed = False
        vec = bool(paths) and self._vector_table(cursor)
        for path in paths:
            row = cursor.execute("SELECT id FROM files WHERE path=?", (path,)).fetchone()
            if row is None:
                continue
            removed = True
            ids = cursor.execute("SELECT id FROM chunks WHERE file_id=?", row).fetchall()
            cursor.executemany("DELETE FROM words WHERE rowid=?", ids)
            if vec:
                cursor.executemany("DELETE FROM nearest WHERE chunk_id=?", ids)
            for table in ("chunks", "symbols", "refs"):
                cursor.execute(f"DELETE FROM {table} WHERE file_id=?", row)
            cursor.execute("DELETE FROM files WHERE id=?", row)
        return removed


def _stored(cursor: Cursor, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Content hash and preparation of those of the paths that are stored."""
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        row = cursor.execute("SELECT content_hash, preparation FROM files WHERE path=?", (path,)).fetchone()
        if row is not None:
            found[path] = (row[0], row[1])
    return found


def _insert(cursor: Cursor, rows: FileRows, generation: int, vec: bool) -> None:
    cursor.execute(
        "INSERT INTO files(path, content_hash, size, mtime_ns, racy, language, n_lines, generation, note, imports,"
        " preparation) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
        (
            rows.path,
            rows.content_hash,
            rows.size,
            rows.mtime_ns,
            int(rows.racy),
            rows.language,
            rows.n_lines,
            generation,
            rows.note,
            rows.imports,
            preparation.current(),
        ),
    )
    file_id = _last_id(cursor)
    vectors = [(key, vector, generation) for key, vector in rows.vectors.items()]
    cursor.executemany("INSERT OR IGNORE INTO vectors VALUES(?,?,?)", vectors)
    sql = (
        "INSERT INTO chunks(file_id, start, end, kind, heading, names, signature_end, language, length, terms,"
        " vector_key) VALUES(?,?,?,?,?,?,?,?,?,?,?)"
    )
    nearest: list[tuple[int, bytes]] = []
    for chunk in rows.chunks:
        cursor.execute(sql, (file_id, *chunk[:10]))
        chunk_id = _last_id(cursor)
        words = (chunk_id, rows.path_words, chunk.name_words, chunk.body)
        cursor.execute("INSERT INTO words(rowid, path, names, body) VALUES(?,?,?,?)", words)
        if vec:
            row = cursor.execute("SELECT vector FROM vectors WHERE vector_key=?", (chunk.vector_key,)).fetchone()
            if row is not None:
                nearest.append((chunk_id, row[0]))
    _insert_nearest(cursor, nearest)
    cursor.executemany(f"INSERT INTO symbols VALUES({file_id},?,?,?,?,?,?,?,?,?,?,?)", list(rows.symbols))
    cursor.executemany(f"INSERT INTO refs VALUES({file_id},?,?,?)", list(rows.refs))


def _insert_nearest(cursor: Cursor, rows: Sequence[tuple[int, bytes]]) -> None:
    # A vector of zeros stands for empty text: known, so never asked for again, but near to nothing.
    filled = [(chunk_id, vector) for chunk_id, vector in rows if any(vector)]
    cursor.executemany("INSERT INTO nearest(chunk_id, vector) VALUES(?, vec_int8(?))", filled)


def _last_id(cursor: Cursor) -> int:
    row = cursor.execute("SELECT last_insert_rowid()").fetchone()
    return 0 if row is None else int(row[0])
