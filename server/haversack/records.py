"""Where records lie: one SQLite database per workspace folder, in the user's data folder, with its key beside it."""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

import apsw

from haversack.record_form import Record
from haversack.types import HaversackError, Problem
from haversack_index.database import (
    Cursor,
    begin_writing,
    cursor_of,
    database_path,
    file_identity,
    make_private,
    set_aside,
)

T = TypeVar("T")

# Of the tables; what a record holds has a version of its own. 1: first format.
FORMAT_VERSION = 1
# Another process writes one record at a time; two seconds is a hundred times what that takes.
BUSY_MILLISECONDS = 2_000
# The newest so many are kept: at some 30 KB a record, 30 MB for a folder.
MAX_RECORDS = 1_000
KEY_BYTES = 32
DAY = 86_400.0

_SCHEMA = (
    "CREATE TABLE records(id TEXT PRIMARY KEY, time REAL NOT NULL, document TEXT NOT NULL, hash TEXT NOT NULL,"
    " seal TEXT NOT NULL); CREATE INDEX records_time ON records(time);"
)
_COLUMNS = "SELECT id, time, document, hash, seal FROM records"


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept now: records of the last `days`, none for 0."""

    now: float
    days: int


class Records:
    """The records of every workspace folder, safe for several processes and threads; every method blocks.

    Each call opens the database and closes it again: no handle outlives a file that another process set aside.
    Raises HaversackError `records_unavailable` when the disk does not let it work.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = Lock()
        self._checked: set[Path] = set()  # databases whose pages were looked through
        self._pruned: dict[Path, Keep] = {}
        self._problems: deque[Problem] = deque()

    def path(self, root: str) -> Path:
        return database_path(Path(root), self._directory)

    def key(self, root: str) -> bytes:
        """The secret of a folder's hashes; without its file, records are whole but cannot be compared any more."""
        return self.known_key(root) or self._guarded(_make_key, self._key_path(root))

    def known_key(self, root: str) -> bytes:
        """The key if there is one, else b""."""
        with suppress(OSError):
            known = self._key_path(root).read_bytes()
            return known if len(known) == KEY_BYTES else b""
        return b""

    def add(self, root: str, record: Record, keep: Keep) -> None:
        def work(cursor: Cursor) -> None:
            cursor.execute(
                "INSERT INTO records(id, time, document, hash, seal) VALUES(?, ?, ?, ?, ?)",
                (record.id, record.time, record.document, record.hash, record.seal),
            )
            oldest = "SELECT rowid FROM records ORDER BY time DESC, rowid DESC LIMIT -1 OFFSET ?"
            cursor.execute(f"DELETE FROM records WHERE rowid IN ({oldest})", (MAX_RECORDS,))

        self._do(root, keep, work)

    def list(self, root: str, keep: Keep, limit: int) -> tuple[Record, ...]:
        """The newest first."""

        def work(cursor: Cursor) -> tuple[Record, ...]:
            cursor.execute(f"{_COLUMNS} ORDER BY time DESC, rowid DESC LIMIT ?", (limit,))
            return tuple(_record(row) for row in cursor.fetchall())

        return self._do(root, keep, work) if self.path(root).exists() else ()

    def starting_with(self, root: str, keep: Keep, prefix: str) -> tuple[Record, ...]:
        """The records whose id begins so, at most a handful."""

        def work(cursor: Cursor) -> tuple[Record, ...]:
            cursor.execute(f"{_COLUMNS} WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT 5", (len(prefix), prefix))
            return tuple(_record(row) for row in cursor.fetchall())

        return self._do(root, keep, work) if self.path(root).exists() else ()

    def prune(self, root: str, keep: Keep) -> None:
        """Remove what is older than is kept; looks at the database once a day and when `keep.days` changes."""
        path = self.path(root)
        if self._is_due(path, keep) and path.exists():
            self._do(root, keep, lambda cursor: None)

    def take_problems(self) -> tuple[Problem, ...]:
        """What happened to databases since the last call."""
        # Without the lock: a question must not wait for a database.
        return tuple(self._problems.popleft() for _ in range(len(self._problems)))

    def _key_path(self, root: str) -> Path:
        return Path(f"{self.path(root)}.key")

    def _do(self, root: str, keep: Keep, work: Callable[[Cursor], T]) -> T:
        """`work` in one transaction, on a new database when the one that is there turns out damaged."""
        path = self.path(root)
        with self._lock:
            return self._guarded(self._twice, path, keep, work)

    def _twice(self, path: Path, keep: Keep, work: Callable[[Cursor], T]) -> T:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_private(path)
        found = file_identity(path)
        try:
            return self._once(path, keep, work)
        except (apsw.NotADBError, apsw.CorruptError):
            # Another process may have met the same damage and begun anew by now.
            if file_identity(path) == found:
                set_aside(path)
                self._problems.append(_damaged(path))
            self._checked.discard(path)
            make_private(path)
            return self._once(path, keep, work)

    def _once(self, path: Path, keep: Keep, work: Callable[[Cursor], T]) -> T:
        with closing(apsw.Connection(str(path))) as connection:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
            cursor = cursor_of(connection)
            # Read before any change: a database of another version is left as it is.
            _check_version(cursor)
            cursor.execute("PRAGMA journal_mode=WAL")
            # A killed process loses at most what it was writing; a power cut perhaps the last records.
            cursor.execute("PRAGMA synchronous=NORMAL")
            # What is pruned is overwritten as well.
            cursor.execute("PRAGMA secure_delete=ON")
            if path not in self._checked:
                if cursor.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                    raise apsw.CorruptError("quick_check")
                self._checked.add(path)
            begin_writing(cursor)
            try:
                _create(cursor)
                if self._is_due(path, keep):
                    cursor.execute("DELETE FROM records WHERE time <= ?", (keep.now - keep.days * DAY,))
                result = work(cursor)
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(apsw.Error):  # a full disk has rolled back already
                    cursor.execute("ROLLBACK")
                raise
        if self._is_due(path, keep):
            self._pruned[path] = keep
        return result

    def _is_due(self, path: Path, keep: Keep) -> bool:
        last = self._pruned.get(path)
        return last is None or last.days != keep.days or keep.now - last.now >= DAY

    def _guarded(self, work: Callable[..., T], *args: object) -> T:
        try:
            return work(*args)
        except (OSError, apsw.Error) as error:
            raise HaversackError(
                "records_unavailable",
                f"The records in {self._directory} cannot be read or written ({type(error).__name__}).",
                "Check that the folder is yours and the disk has room, or set haversack.records.keepDays to 0.",
            ) from error


def _check_version(cursor: Cursor) -> None:
    row = cursor.execute("PRAGMA user_version").fetchone()
    version = int(row[0]) if row is not None else 0
    if version not in (0, FORMAT_VERSION):
        raise HaversackError(
            "records_format_unknown",
            f"The records were written by another version (format {version}).",
            "Use the newer Haversack, or move the file of records aside.",
        )


def _create(cursor: Cursor) -> None:
    if cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        cursor.execute(_SCHEMA)
        cursor.execute(f"PRAGMA user_version={FORMAT_VERSION}")


def _record(row: Sequence[object]) -> Record:
    """As it stands there: whatever another program wrote into a column is for `faults` to find."""
    id, time, document, digest, seal = row
    return Record(str(id), float(time) if isinstance(time, int | float) else 0.0, str(document), str(digest), str(seal))


def _make_key(path: Path) -> bytes:
    """A new key, whole or not there at all, whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = secrets.token_bytes(KEY_BYTES)
    part = Path(f"{path}.{os.getpid()}")
    make_private(part)
    part.write_bytes(key)
    part.replace(path)
    return key


def _damaged(path: Path) -> Problem:
    return Problem(
        "records",
        "records_damaged",
        f"The records in {path.name} were damaged; new ones are begun.",
        f"The old file is kept beside it as {path.name}.damaged.",
    )


def choose(found: Sequence[Record], prefix: str) -> Record:
    """The one record that a prefix of its id means. Raises HaversackError when none or several do."""
    exact = [record for record in found if record.id == prefix]
    if len(found) == 1 or exact:
        return (exact or list(found))[0]
    if not found:
        raise HaversackError(
            "record_not_found", f"There is no record {prefix[:80]!r}.", "`haversack log` lists the records there are."
        )
    raise HaversackError(
        "record_ambiguous",
        f"Several records begin with {prefix[:80]!r}.",
        "Give more of the id.",
        ids=[record.id for record in found],
    )
