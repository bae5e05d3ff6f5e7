"""The index on disk: one SQLite database per workspace folder, opened, checked, set aside when damaged, written.

The database is a cache: it may be killed, damaged or thrown away at any moment and must never answer wrongly.
Everything one file gives (its row, chunks, words, vectors, symbols, references) changes in one transaction.
SQLite comes from apsw, because an interpreter's own `sqlite3` often cannot load extensions and may be too old for
full-text tables that hold no text yet allow deletes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw
import sqlite_vec

# What a database of another number holds is unknown, so it is rebuilt. A line per bump:
# 1: first layout.
FORMAT_VERSION = 1

# Other processes hold the write lock for one batch (about half a second); ten times that is a stuck disk, not a queue.
BUSY_TIMEOUT_MS = 5_000
# A batch that still finds the lock taken tries again this often before it gives the error to its caller.
LOCK_ATTEMPTS = 6
# 64 MB of page cache holds the whole of a 25,000-chunk index; SQLite takes it only as pages are read.
PAGE_CACHE_KIB = 64_000
# Vectors of text that left the index are kept for branch switches, at most as many as this or as there are chunks.
SPARE_VECTORS = 20_000

# The words of a chunk are cut before they get here, so the table only has to split at blanks and keep `_`.
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, content_hash TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, racy INTEGER NOT NULL, language TEXT NOT NULL, n_lines INTEGER NOT NULL,
  generation INTEGER NOT NULL, note TEXT NOT NULL, imports TEXT NOT NULL);
CREATE TABLE chunks(
  id INTEGER PRIMARY KEY AUTOINCREMENT, file_id INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
  kind TEXT NOT NULL, heading TEXT NOT NULL, names TEXT NOT NULL, signature_end INTEGER NOT NULL,
  language TEXT NOT NULL, length INTEGER NOT NULL, terms TEXT NOT NULL, vector_key BLOB NOT NULL);
CREATE INDEX chunks_file ON chunks(file_id);
CREATE INDEX chunks_vector ON chunks(vector_key);
CREATE VIRTUAL TABLE words USING fts5(
  path, names, body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
CREATE TABLE vectors(vector_key BLOB PRIMARY KEY, vector BLOB NOT NULL, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE symbols(
  file_id INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, kind TEXT NOT NULL, start INTEGER NOT NULL,
  end INTEGER NOT NULL, line INTEGER NOT NULL, signature_end INTEGER NOT NULL, container TEXT NOT NULL,
  signature TEXT NOT NULL, language TEXT NOT NULL, depth INTEGER NOT NULL);
CREATE INDEX symbols_file ON symbols(file_id);
CREATE INDEX symbols_name ON symbols(name);
CREATE INDEX symbols_folded ON symbols(folded);
CREATE TABLE refs(file_id INTEGER NOT NULL, name TEXT NOT NULL, line INTEGER NOT NULL, within TEXT NOT NULL);
CREATE INDEX refs_file ON refs(file_id);
CREATE INDEX refs_name ON refs(name);
CREATE TABLE skipped(
  path TEXT PRIMARY KEY, reason TEXT NOT NULL, rule TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;
"""

# Joins parts of a heading path in one column; a control character that no language allows in a name.
SEPARATOR = "\x1f"


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
    """All rows of one file, ready to store. `racy`: changed so shortly before it was read that its time proves nothing."""

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
    content_hash: str
    size: int
    mtime_ns: int
    racy: bool


class SkippedRow(NamedTuple):
    """A skipped path. `size` and `mtime_ns` are set when its content was the reason, so that it need not be read again."""

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


def database_path(folder: Path, cache_dir: Path) -> Path:
    """Where the index of `folder` lives: its base name for people, a hash of its real path for identity."""
    real = os.path.realpath(folder)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(real))[:40] or "root"
    digest = hashlib.blake2b(os.fsencode(real), digest_size=8).hexdigest()
    return Path(cache_dir) / f"{name}-{digest}.db"


class Store:
    """The one writer of a database. Not for several threads; several processes take turns at batches."""

    def __init__(self, path: Path) -> None:
        """Open or create. A damaged or unknown file is set aside; `recovered` then says why. OSError: no place to write."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):  # a cache folder of another owner is used as it is
            path.parent.chmod(0o700)
        self.path = path
        self.recovered = ""
        self.vector_problem = ""
        self.connection = self._open()
        self._identity = file_identity(path)
        self.vector_problem = load_vector_extension(self.connection)

    def _open(self) -> apsw.Connection:
        try:
            return _open_checked(self.path)
        except _Unusable as error:
            self.recovered = f"The index was {error} and is being rebuilt; the old file is kept beside it as .damaged."
            set_aside(self.path)
            return _open_checked(self.path)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def batch(self) -> Iterator[apsw.Cursor]:
        """One transaction, begun as a writer so that waiting for the lock works; rolled back on any error."""
        if file_identity(self.path) != self._identity:
            self.connection.close()
            self.connection = self._open()
            self._identity = file_identity(self.path)
            self.vector_problem = load_vector_extension(self.connection)
        cursor = self.connection.cursor()
        for attempt in range(LOCK_ATTEMPTS):
            try:
                cursor.execute("BEGIN IMMEDIATE")
                break
            except apsw.BusyError:
                if attempt == LOCK_ATTEMPTS - 1:
                    raise
                time.sleep(0.05 * (attempt + 1))
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
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

        A file that another process stored meanwhile with the same content is left alone. The generation moves on
        only when an answer could change.
        """
        with self.batch() as cursor:
            generation = int(get_meta(cursor, "generation") or 0)
            stored = _stored(cursor, [rows.path for rows in files])
            changed = [rows for rows in files if stored.get(rows.path) != rows.content_hash]
            same = [rows for rows in files if stored.get(rows.path) == rows.content_hash]
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
        rows = self.connection.execute("SELECT path, content_hash, size, mtime_ns, racy FROM files")
        return {row[0]: StoredFile(row[1], row[2], row[3], bool(row[4])) for row in cast("Iterable[Any]", rows)}

    def meta(self, key: str) -> str:
        return get_meta(self.connection.cursor(), key)

    def set_meta(self, values: Mapping[str, str]) -> None:
        with self.batch() as cursor:
            set_meta(cursor, values)

    def skipped(self) -> dict[str, SkippedRow]:
        rows = self.connection.execute("SELECT path, reason, rule, size, mtime_ns FROM skipped")
        return {row[0]: SkippedRow(*row) for row in cast("Iterable[Any]", rows)}

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
        return known_vectors(self.connection, keys)

    def missing_vectors(self, limit: int) -> list[MissingVector]:
        """Chunks whose text has no vector yet, in order of files."""
        rows = self.connection.execute(
            "SELECT c.id, f.path, f.content_hash, c.start, c.end, c.heading, c.vector_key FROM chunks c JOIN files f ON f.id=c.file_id"
            " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.vector_key=c.vector_key) ORDER BY f.path, c.id LIMIT ?",
            (limit,),
        )
        return [MissingVector(*row) for row in cast("Iterable[Any]", rows)]

    def add_vectors(self, vectors: Mapping[bytes, bytes]) -> int:
        """Store vectors of chunks that are in the index already; returns the generation after it."""
        with self.batch() as cursor:
            generation = int(get_meta(cursor, "generation") or 0) + 1
            rows = [(key, vector, generation) for key, vector in vectors.items()]
            cursor.executemany("INSERT OR IGNORE INTO vectors VALUES(?,?,?)", rows)
            if self._vector_table(cursor):
                for key, vector in vectors.items():
                    ids = cursor.execute("SELECT id FROM chunks WHERE vector_key=?", (key,)).fetchall()
                    _insert_nearest(cursor, [(cast("int", row[0]), vector) for row in ids])
            set_meta(cursor, {"generation": str(generation)})
        return generation

    def prune_vectors(self) -> None:
        """Drop the oldest vectors of text that is no longer indexed, beyond what branch switches bring back."""
        with self.batch() as cursor:
            spare = "SELECT v.vector_key FROM vectors v WHERE NOT EXISTS"
            spare += " (SELECT 1 FROM chunks c WHERE c.vector_key=v.vector_key)"
            row = cast("tuple[int]", cursor.execute("SELECT count(*) FROM chunks").fetchone())
            keep = max(SPARE_VECTORS, row[0])
            cursor.execute(
                f"DELETE FROM vectors WHERE vector_key IN ({spare} ORDER BY v.generation DESC LIMIT -1 OFFSET ?)",
                (keep,),
            )

    def _vector_table(self, cursor: apsw.Cursor) -> bool:
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
        cursor.execute(
            f"CREATE VIRTUAL TABLE nearest USING vec0(chunk_id INTEGER PRIMARY KEY, vector int8[{dim}] distance_metric=cosine)"
        )
        rows = cursor.execute(
            "SELECT c.id, v.vector FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key"
        ).fetchall()
        _insert_nearest(cursor, cast("list[tuple[int, bytes]]", rows))
        set_meta(cursor, {"nearest": "whole"})
        return True

    def _remove(self, cursor: apsw.Cursor, paths: Sequence[str]) -> bool:
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


def open_reading(path: Path) -> tuple[apsw.Connection, str]:
    """A connection that cannot write, and why it has no vector extension, if so. apsw.Error: no usable database."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)  # WAL needs its shared-memory file
    try:
        problem = load_vector_extension(connection)
        _settle(connection)
        connection.execute("PRAGMA query_only=1")
        version = cast("tuple[int]", connection.execute("PRAGMA user_version").fetchone())[0]
        if version != FORMAT_VERSION:
            raise apsw.NotADBError(f"format {version}, expected {FORMAT_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection, problem


def load_vector_extension(connection: apsw.Connection) -> str:
    """Load sqlite-vec into this connection; returns why not in words for the user, empty when it is loaded."""
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)  # nothing else may be loaded through SQL later
    except (apsw.Error, AttributeError, OSError) as error:
        return (
            f"The vector extension cannot be loaded ({error}); reinstall sqlite-vec. Vectors are compared one by one."
        )
    return ""


def known_vectors(connection: apsw.Connection, keys: Sequence[bytes]) -> set[bytes]:
    cursor = connection.cursor()
    sql = "SELECT 1 FROM vectors WHERE vector_key=?"
    return {key for key in keys if cursor.execute(sql, (key,)).fetchone() is not None}


def get_meta(cursor: apsw.Cursor, key: str) -> str:
    row = cursor.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    return "" if row is None else cast("str", row[0])


def set_meta(cursor: apsw.Cursor, values: Mapping[str, str]) -> None:
    cursor.executemany("INSERT OR REPLACE INTO meta VALUES(?,?)", list(values.items()))


def file_identity(path: Path) -> tuple[int, int]:
    """Device and inode, to notice that the file was replaced under an open connection; zeros when there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return (0, 0)
    return (stat.st_dev, stat.st_ino)


def set_aside(path: Path) -> None:
    """Move a database that cannot be used to `.damaged`, keeping one such copy, so that nothing is lost unseen."""
    for suffix in ("", "-wal", "-shm"):
        source, target = Path(f"{path}{suffix}"), Path(f"{path}.damaged{suffix}")
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            source.rename(target)


class _Unusable(Exception):
    """A database file that cannot be used; the text completes "The index was ..."."""


def _open_checked(path: Path) -> apsw.Connection:
    if path.is_dir():
        raise _Unusable("a folder")
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # created closed to others whatever the umask
    with suppress(OSError):
        os.fchmod(descriptor, 0o600)
    os.close(descriptor)
    connection = apsw.Connection(str(path))
    try:
        _settle(connection)
        version = cast("tuple[int]", connection.execute("PRAGMA user_version").fetchone())[0]
        tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if tables is None:
            _create(connection)
        elif version != FORMAT_VERSION:
            raise _Unusable(f"of format {version} (this is {FORMAT_VERSION})")
        else:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != ("ok",):
                raise _Unusable("damaged")
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        connection.close()
        raise _Unusable("damaged") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: apsw.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    # Another process may have made the tables while this one waited for the lock.
    if cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        cursor.execute(_SCHEMA)
        # Words of a name weigh more than the body's when the pool is drawn; the exact scorer has the last word.
        cursor.execute("INSERT INTO words(words, rank) VALUES('rank', 'bm25(2.0, 3.0, 1.0)')")
        cursor.execute(f"PRAGMA user_version={FORMAT_VERSION}")
    cursor.execute("COMMIT")


def _settle(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA journal_mode=WAL")
    # With a write-ahead log this is safe against a killed process; a power cut may cost the last batches, no more.
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")


def _stored(cursor: apsw.Cursor, paths: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        row = cursor.execute("SELECT content_hash FROM files WHERE path=?", (path,)).fetchone()
        if row is not None:
            found[path] = cast("str", row[0])
    return found


def _insert(cursor: apsw.Cursor, rows: FileRows, generation: int, vec: bool) -> None:
    cursor.execute(
        "INSERT INTO files(path, content_hash, size, mtime_ns, racy, language, n_lines, generation, note, imports)"
        " VALUES(?,?,?,?,?,?,?,?,?,?)",
        (rows.path, rows.content_hash, rows.size, rows.mtime_ns, int(rows.racy), rows.language, rows.n_lines)
        + (generation, rows.note, rows.imports),
    )
    file_id = cursor.connection.last_insert_rowid()
    cursor.executemany(
        "INSERT OR IGNORE INTO vectors VALUES(?,?,?)",
        [(key, vector, generation) for key, vector in rows.vectors.items()],
    )
    sql = "INSERT INTO chunks(file_id, start, end, kind, heading, names, signature_end, language, length, terms, vector_key)"
    sql += " VALUES(?,?,?,?,?,?,?,?,?,?,?)"
    nearest: list[tuple[int, bytes]] = []
    for chunk in rows.chunks:
        cursor.execute(sql, (file_id, *chunk[:10]))
        chunk_id = cursor.connection.last_insert_rowid()
        words = (chunk_id, rows.path_words, chunk.name_words, chunk.body)
        cursor.execute("INSERT INTO words(rowid, path, names, body) VALUES(?,?,?,?)", words)
        if vec:
            row = cursor.execute("SELECT vector FROM vectors WHERE vector_key=?", (chunk.vector_key,)).fetchone()
            if row is not None:
                nearest.append((chunk_id, cast("bytes", row[0])))
    _insert_nearest(cursor, nearest)
    cursor.executemany(f"INSERT INTO symbols VALUES({file_id},?,?,?,?,?,?,?,?,?,?,?)", list(rows.symbols))
    cursor.executemany(f"INSERT INTO refs VALUES({file_id},?,?,?)", list(rows.refs))


def _insert_nearest(cursor: apsw.Cursor, rows: Sequence[tuple[int, bytes]]) -> None:
    # A vector of zeros stands for empty text: known, so never asked for again, but near to nothing.
    filled = [(chunk_id, vector) for chunk_id, vector in rows if any(vector)]
    # The table refuses a second row of the same id, which two writers in turn can bring about.
    cursor.executemany("DELETE FROM nearest WHERE chunk_id=?", [(chunk_id,) for chunk_id, _ in filled])
    cursor.executemany("INSERT INTO nearest(chunk_id, vector) VALUES(?, vec_int8(?))", filled)
