"""The memories in one SQLite file, safe for several processes and threads."""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, cast

import apsw
import platformdirs

from haversack.memory.entries import Category, Memory, Scope, checked, member
from haversack.memory.ranking import rank
from haversack.types import HaversackError, InvalidRequest

# 1: first format. 2: private notes, origins, and one id in several projects, as clones of a repository share notes.
FORMAT_VERSION = 2
# Another process writes one row at a time; two seconds is a thousand times what that takes.
_BUSY_MILLISECONDS = 2_000
# Each question looks at all of them: at 2,000 that takes some 30 ms.
MOST_MEMORIES = 2_000
_TABLE = (
    "CREATE TABLE IF NOT EXISTS memory (id TEXT NOT NULL, category TEXT NOT NULL, title TEXT NOT NULL,"
    " content TEXT NOT NULL, keywords TEXT NOT NULL, scope TEXT NOT NULL, project TEXT NOT NULL,"
    " created REAL NOT NULL, updated REAL NOT NULL, private INTEGER NOT NULL, origins TEXT NOT NULL,"
    " PRIMARY KEY (project, id))"
)


def users_file() -> Path:
    """Where the memories of whoever runs this are."""
    return platformdirs.user_data_path("haversack") / "memories.db"


class Merge(StrEnum):
    """What became of a note from elsewhere."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"  # the one here is as new, or newer, and stays


class MemoryStore:
    """Every method blocks. What reads and then writes does both in one transaction that no other process is in."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._connection: Any = apsw.Connection(str(file))
        self._connection.set_busy_timeout(_BUSY_MILLISECONDS)
        self._connection.pragma("journal_mode", "WAL")
        with self._transaction():
            self._create()

    def add(
        self,
        category: str,
        title: str,
        content: str,
        scope: str,
        *,
        now: float,
        project: str = "",
        keywords: Sequence[str] = (),
        private: bool = False,
        origins: Sequence[str] = (),
    ) -> Memory:
        """Stores a new note. Raises `InvalidRequest` that names the field that is wrong, and `memory_full`."""
        memory = checked(
            Memory(
                uuid.uuid4().hex,
                member(Category, "category", category),
                title.strip(),
                content.strip(),
                _stripped(keywords),
                member(Scope, "scope", scope),
                _key(project) if scope.lower() == Scope.PROJECT else "",
                now,
                now,
                private,
                tuple(dict.fromkeys(origins)),
            )
        )
        with self._transaction():
            self._insert(memory)
        return memory

    def update(
        self,
        memory_id: str,
        *,
        now: float,
        projects: Sequence[str] | None = None,
        category: str | None = None,
        title: str | None = None,
        content: str | None = None,
        keywords: Sequence[str] | None = None,
        private: bool | None = None,
        origins: Sequence[str] | None = None,
    ) -> Memory:
        """Changes the given fields of a note. Origins are only added: what a note was derived from stays true.

        `projects`: the folders whose notes may be meant, besides the user's; None for any. Raises `memory_not_found`.
        """
        with self._transaction():
            memory = self._get(memory_id, projects)
            changed = checked(
                replace(
                    memory,
                    category=member(Category, "category", category) if category is not None else memory.category,
                    title=title.strip() if title is not None else memory.title,
                    content=content.strip() if content is not None else memory.content,
                    keywords=_stripped(keywords) if keywords is not None else memory.keywords,
                    private=private if private is not None else memory.private,
                    origins=tuple(dict.fromkeys((*memory.origins, *(origins or ())))),
                    updated=now,
                )
            )
            self._replace(changed)
        return changed

    def delete(self, memory_id: str, *, projects: Sequence[str] | None = None) -> Memory:
        """Removes a note and gives it back. Raises `memory_not_found`."""
        with self._transaction():
            memory = self._get(memory_id, projects)
            self._connection.execute("DELETE FROM memory WHERE id = ? AND project = ?", (memory.id, memory.project))
        return memory

    def list(self, projects: Sequence[str] = ()) -> tuple[Memory, ...]:
        """The user's notes and those of the given projects, oldest first, ties by id."""
        wanted = ",".join("?" * len(projects))
        with self._reading():
            rows: list[Sequence[object]] = self._connection.execute(
                f"SELECT * FROM memory WHERE scope = 'user' OR project IN ({wanted}) ORDER BY created, id, project",
                tuple(_key(project) for project in projects),
            ).fetchall()
        return tuple(_memory(row) for row in rows)

    def count(self) -> tuple[int, int, int]:
        """How many notes are the user's, how many are of projects, and of how many projects."""
        with self._reading():
            user, project, projects = self._connection.execute(
                "SELECT coalesce(sum(scope = 'user'), 0), coalesce(sum(scope = 'project'), 0),"
                " count(DISTINCT nullif(project, '')) FROM memory"
            ).fetchone()
        return user, project, projects

    def search(self, query: str, projects: Sequence[str] = (), limit: int = 10) -> tuple[tuple[Memory, float], ...]:
        """Notes that speak of `query`, best first, each with a score in 0..1 (the best has 1)."""
        return rank(query, self.list(projects))[:limit]

    def merge(self, memories: Iterable[Memory]) -> tuple[tuple[Memory, Merge], ...]:
        """Takes notes of a project that were written elsewhere: new ones, and newer ones of known ids."""
        done: list[tuple[Memory, Merge]] = []
        with self._transaction():
            for memory in memories:
                memory = checked(replace(memory, project=_key(memory.project)))  # noqa: PLW2901 - as it is kept
                known = self._find(memory.id, (memory.project,))
                kept = next((each for each in known if each.project == memory.project), None)
                if kept is None:
                    self._insert(memory)
                    done.append((memory, Merge.ADDED))
                elif _told(kept) == _told(memory) and set(memory.origins) <= set(kept.origins):
                    done.append((memory, Merge.UNCHANGED))
                else:
                    newer = memory.updated > kept.updated
                    # Either way it stays as restricted as the files that anybody says it was derived from.
                    origins = tuple(dict.fromkeys((*kept.origins, *memory.origins)))
                    self._replace(replace(memory if newer else kept, private=kept.private, origins=origins))
                    done.append((memory, Merge.UPDATED) if newer else (kept, Merge.KEPT))
        return tuple(done)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """Writing, alone: begun at once, so that what is read inside is what will be changed."""
        with self._reading():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Generator[None]:
        with self._lock:
            try:
                yield
            except apsw.BusyError as error:
                raise HaversackError(
                    "memory_busy", "Another program is writing memories.", "Try again in a moment."
                ) from error

    def _create(self) -> None:
        connection = self._connection
        version = connection.pragma("user_version")
        if version not in (0, 1, FORMAT_VERSION):
            raise HaversackError(
                "memory_format_unknown",
                f"The memories were written by another version (format {version}).",
                "Use the newer Haversack, or move the file of memories aside.",
            )
        if version == 1:
            connection.execute("ALTER TABLE memory RENAME TO memory_1")
        connection.execute(_TABLE)
        if version == 1:
            connection.execute("INSERT INTO memory SELECT *, 0, '[]' FROM memory_1")
            connection.execute("DROP TABLE memory_1")
        connection.pragma("user_version", FORMAT_VERSION)

    def _get(self, memory_id: str, projects: Sequence[str] | None) -> Memory:
        found = self._find(memory_id, None if projects is None else [_key(project) for project in projects])
        if not found:
            message = f"id: there is no memory {memory_id[:80]!r}."
            raise HaversackError("memory_not_found", message, "List the memories for their ids.", field="id")
        if len(found) > 1:
            message = f"id: several folders have a memory {memory_id[:80]!r}."
            raise InvalidRequest(message, "Name the workspace folder.", field="id")
        return found[0]

    def _find(self, memory_id: str, projects: Sequence[str] | None) -> list[Memory]:
        """The notes of an id among those of the user and of `projects` (keys); None for all projects."""
        rows: list[Sequence[object]] = self._connection.execute(
            "SELECT * FROM memory WHERE id = ? ORDER BY project", (memory_id,)
        ).fetchall()
        found = [_memory(row) for row in rows]
        return [each for each in found if projects is None or not each.project or each.project in projects]

    def _insert(self, memory: Memory) -> None:
        count = self._connection.execute("SELECT count(*) FROM memory WHERE project = ?", (memory.project,)).fetchone()[
            0
        ]
        if count >= MOST_MEMORIES:
            message = f"There are {count:,} memories of this scope already."
            raise HaversackError("memory_full", message, "Delete some that no longer help.")
        self._connection.execute("INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(memory))

    def _replace(self, memory: Memory) -> None:
        self._connection.execute("REPLACE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(memory))


def _told(memory: Memory) -> tuple[object, ...]:
    """What two copies of a note must agree on to be the same."""
    return (memory.category, memory.title, memory.content, memory.keywords)


def _stripped(keywords: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in keywords))


def _key(project: str) -> str:
    """A folder's root as the database can hold it: a path on disk need not be UTF-8."""
    return project.encode("utf-8", "backslashreplace").decode("utf-8")


def _row(memory: Memory) -> tuple[str | float | int, ...]:
    return (
        *(memory.id, memory.category.value, memory.title, memory.content, "|".join(memory.keywords)),
        *(memory.scope.value, memory.project, memory.created, memory.updated),
        *(int(memory.private), json.dumps(memory.origins)),
    )


def _memory(row: Sequence[object]) -> Memory:
    text = [str(value) for value in row]
    keywords = tuple(word for word in text[4].split("|") if word)
    origins = tuple(str(each) for each in cast("list[object]", json.loads(text[10])))
    return Memory(
        *(text[0], Category(text[1]), text[2], text[3], keywords, Scope(text[5]), text[6]),
        *(float(text[7]), float(text[8]), text[9] != "0", origins),
    )
