"""Opening the database of a folder: where it lies, its tables, its extension, and what happens to a damaged one.

SQLite comes from apsw, because an interpreter's own `sqlite3` often cannot load extensions and may be too old for
full-text tables that hold no text yet allow deletes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

import apsw
import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]

# What a database of another number holds is unknown, so it is rebuilt. A line per bump:
# 1: first layout.
# 2: each file says which rules prepared it.
FORMAT_VERSION = 2

# Other processes hold the write lock for one batch (about half a second); ten times that is a stuck disk, not a queue.
BUSY_TIMEOUT_MS = 5_000
# A batch that still finds the lock taken tries again this often before it gives the error to its caller.
LOCK_ATTEMPTS = 6
# 64 MB of page cache holds the whole of a 25,000-chunk index; SQLite takes it only as pages are read.
PAGE_CACHE_KIB = 64_000
# Pages of 4 KB in the write-ahead log before its writer moves them to the database, for which it waits for the disk:
# 32 MB take the first pass over 5,000 files, whose time was in good part that waiting. A killed process loses nothing.
LOG_PAGES = 8_000
# The words of a chunk are cut before they get here, so the table only has to split at blanks and keep `_`.
_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, content_hash TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, racy INTEGER NOT NULL, language TEXT NOT NULL, n_lines INTEGER NOT NULL,
  generation INTEGER NOT NULL, note TEXT NOT NULL, imports TEXT NOT NULL, preparation TEXT NOT NULL);
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


# What a status says after a database was set aside.
RECOVERED = "The index was {} and has been rebuilt; the old file is kept beside it as .damaged."


Bindings = Sequence[Any] | dict[str, Any]
"""Values of a statement, by place or by name."""


class Cursor(Protocol):
    """The part of an apsw cursor that is used here; the library's own types leave values unknown."""

    def execute(self, statements: str, bindings: Bindings = (), /) -> Cursor: ...
    def executemany(self, statements: str, bindings: Iterable[Sequence[Any]], /) -> Cursor: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


def cursor_of(connection: apsw.Connection) -> Cursor:
    return cast("Cursor", connection.cursor())


def database_path(folder: Path, cache_dir: Path) -> Path:
    """Where the index of `folder` lives: its base name for people, a hash of its real path for identity."""
    real = os.path.realpath(folder)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(real))[:40] or "root"
    digest = hashlib.blake2b(os.fsencode(real), digest_size=8).hexdigest()
    return Path(cache_dir) / f"{name}-{digest}.db"


def open_writing(path: Path) -> tuple[apsw.Connection, str]:
    """A checked connection for the one writer, and what was wrong with a file that had to be set aside, if any did.

    OSError or apsw.CantOpenError: there is no place to write.
    """
    try:
        return _open_checked(path), ""
    except _UnusableError as error:
        set_aside(path)
        return _open_checked(path), RECOVERED.format(error)


def open_reading(path: Path) -> tuple[apsw.Connection, str]:
    """A connection that cannot write, and why it has no vector extension, if so. apsw.Error: no usable database."""
    if _wrong_kind(path) is not None:
        raise apsw.CantOpenError("not a file")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)  # WAL needs its shared-memory file
    try:
        problem = load_vector_extension(connection)
        _settle(connection)
        cursor = cursor_of(connection)
        cursor.execute("PRAGMA query_only=1")
        if (version := _version(cursor)) != FORMAT_VERSION:
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
        return f"The vector extension cannot be loaded ({error}); reinstall sqlite-vec. Vectors are compared in memory."
    return ""


def known_vectors(cursor: Cursor, keys: Sequence[bytes]) -> set[bytes]:
    """Which of these keys have a vector."""
    sql = "SELECT 1 FROM vectors WHERE vector_key=?"
    return {key for key in keys if cursor.execute(sql, (key,)).fetchone() is not None}


def get_meta(cursor: Cursor, key: str) -> str:
    row = cursor.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    return "" if row is None else str(row[0])


def set_meta(cursor: Cursor, values: Mapping[str, str]) -> None:
    cursor.executemany("INSERT OR REPLACE INTO meta VALUES(?,?)", list(values.items()))


def storable(text: str) -> str:
    """Text as SQLite can take it: half of a surrogate pair, which JSON can carry, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def file_identity(path: Path) -> tuple[int, int]:
    """Device and inode, to notice that the file was replaced under an open connection; zeros when there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


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


def remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def make_private(path: Path) -> None:
    """Create the file if need be, closed to others whatever the umask. Raises OSError."""
    # Never through a link: its target is not ours to close or to write.
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with suppress(OSError, AttributeError):
        os.fchmod(descriptor, 0o600)
    os.close(descriptor)


def begin_writing(cursor: Cursor) -> None:
    """Begin as a writer, so that waiting for the lock works: what reads first and then writes fails at once."""
    _patiently(lambda: cursor.execute("BEGIN IMMEDIATE"))


class _UnusableError(Exception):
    """A database file that cannot be used; the text completes "The index was ..."."""


def _wrong_kind(path: Path) -> str | None:
    """What stands in the place of a database file, None when that is a file or nothing."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    return None if stat.S_ISREG(mode) else "a link or a special file"


def _open_checked(path: Path) -> apsw.Connection:
    if (kind := _wrong_kind(path)) is not None:
        raise _UnusableError(kind)
    make_private(path)
    connection = apsw.Connection(str(path))
    try:
        # Two processes that open a new file together can find it locked in ways the busy timeout does not cover.
        _patiently(lambda: _settle(connection))
        cursor = cursor_of(connection)
        cursor.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        if cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
            _create(cursor)
        if (version := _version(cursor)) != FORMAT_VERSION:
            raise _UnusableError(f"of format {version}, not {FORMAT_VERSION},")
        if cursor.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise _UnusableError("damaged")
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        connection.close()
        raise _UnusableError("damaged") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _create(cursor: Cursor) -> None:
    begin_writing(cursor)
    # Another process may have made the tables while this one waited for the lock.
    if cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        cursor.execute(_SCHEMA)
        # Words of a name weigh more than the body's when the pool is drawn; the exact scorer has the last word.
        cursor.execute("INSERT INTO words(words, rank) VALUES('rank', 'bm25(2.0, 3.0, 1.0)')")
        cursor.execute(f"PRAGMA user_version={FORMAT_VERSION}")
    cursor.execute("COMMIT")


def _settle(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    cursor = cursor_of(connection)
    cursor.execute("PRAGMA journal_mode=WAL")
    # With a write-ahead log this is safe against a killed process; a power cut may cost the last batches, no more.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute(f"PRAGMA cache_size=-{PAGE_CACHE_KIB}")


def _version(cursor: Cursor) -> int:
    row = cursor.execute("PRAGMA user_version").fetchone()
    return 0 if row is None else int(row[0])


def _patiently(action: Callable[[], object]) -> None:
    for attempt in range(LOCK_ATTEMPTS):
        try:
            action()
            return
        except apsw.BusyError:
            if attempt == LOCK_ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
