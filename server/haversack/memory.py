"""Core memories: short notes the user keeps, for all workspaces (user scope) or for one (project scope)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import apsw
from rank_bm25 import BM25Plus  # pyright: ignore[reportMissingTypeStubs]

from haversack.types import HaversackError, InvalidRequest
from haversack_index.lexical import question_words, words

E = TypeVar("E", bound=StrEnum)

# 1: first format.
FORMAT_VERSION = 1
# Another process writes one row at a time; two seconds is a thousand times what that takes.
_BUSY_MILLISECONDS = 2_000
# A note, not a document: what is longer belongs in a file of the workspace.
LONGEST_CONTENT = 20_000


class Category(StrEnum):
    KNOWLEDGE = "knowledge"
    RULE = "rule"
    EXPERIENCE = "experience"


class Scope(StrEnum):
    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Memory:
    """One note. `project` is the workspace folder's root for project scope, else ""; times are seconds, UTC."""

    id: str
    category: Category
    title: str
    content: str
    keywords: tuple[str, ...]
    scope: Scope
    project: str
    created: float
    updated: float


class MemoryStore:
    """The memories in one SQLite file, safe for several processes and threads; every method blocks."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = Lock()
        self._connection: Any = apsw.Connection(str(file))
        self._connection.set_busy_timeout(_BUSY_MILLISECONDS)
        self._connection.pragma("journal_mode", "WAL")
        with self._lock:
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
    ) -> Memory:
        """Stores a new note. Raises `InvalidRequest` for an unknown category or scope, or empty text."""
        memory = _checked(
            Memory(
                uuid.uuid4().hex,
                _member(Category, category),
                title.strip(),
                content.strip(),
                tuple(keywords),
                _member(Scope, scope),
                _key(project) if scope == Scope.PROJECT else "",
                now,
                now,
            )
        )
        self._write("INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _row(memory))
        return memory

    def update(
        self,
        memory_id: str,
        *,
        now: float,
        category: str | None = None,
        title: str | None = None,
        content: str | None = None,
        keywords: Sequence[str] | None = None,
    ) -> Memory:
        """Changes the given fields of a note. Raises `memory_not_found`."""
        memory = self._get(memory_id)
        changed = _checked(
            replace(
                memory,
                category=_member(Category, category) if category is not None else memory.category,
                title=title.strip() if title is not None else memory.title,
                content=content.strip() if content is not None else memory.content,
                keywords=tuple(keywords) if keywords is not None else memory.keywords,
                updated=now,
            )
        )
        count = self._write(
            "UPDATE memory SET category = ?, title = ?, content = ?, keywords = ?, updated = ? WHERE id = ?",
            (changed.category.value, changed.title, changed.content, "|".join(changed.keywords), now, memory_id),
        )
        if not count:
            raise _not_found(memory_id)
        return changed

    def delete(self, memory_id: str) -> None:
        """Removes a note. Raises `memory_not_found`."""
        if not self._write("DELETE FROM memory WHERE id = ?", (memory_id,)):
            raise _not_found(memory_id)

    def list(self, projects: Sequence[str] = ()) -> tuple[Memory, ...]:
        """The user's notes and those of the given projects, oldest first, ties by id."""
        wanted = ",".join("?" * len(projects))
        with self._lock:
            rows: list[Sequence[object]] = self._connection.execute(
                f"SELECT * FROM memory WHERE scope = 'user' OR project IN ({wanted}) ORDER BY created, id",
                tuple(_key(project) for project in projects),
            ).fetchall()
        return tuple(_memory(row) for row in rows)

    def search(self, query: str, projects: Sequence[str] = (), limit: int = 10) -> tuple[tuple[Memory, float], ...]:
        """Notes that share a word with `query`, best first, each with a score in 0..1 (the best has 1)."""
        return rank(query, self.list(projects))[:limit]

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _create(self) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = connection.pragma("user_version")
            if version not in (0, FORMAT_VERSION):
                raise HaversackError(
                    "memory_format_unknown",
                    f"The memories were written by another version (format {version}).",
                    "Use the newer Haversack, or move the file of memories aside.",
                )
            connection.execute(
                "CREATE TABLE IF NOT EXISTS memory (id TEXT PRIMARY KEY, category TEXT NOT NULL, title TEXT NOT NULL,"
                " content TEXT NOT NULL, keywords TEXT NOT NULL, scope TEXT NOT NULL, project TEXT NOT NULL,"
                " created REAL NOT NULL, updated REAL NOT NULL)"
            )
            connection.pragma("user_version", FORMAT_VERSION)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _get(self, memory_id: str) -> Memory:
        with self._lock:
            row: Sequence[object] | None = self._connection.execute(
                "SELECT * FROM memory WHERE id = ?", (memory_id,)
            ).fetchone()
        if row is None:
            raise _not_found(memory_id)
        return _memory(row)

    def _write(self, sql: str, values: tuple[str | float, ...]) -> int:
        with self._lock:
            self._connection.execute(sql, values)
            return int(self._connection.changes())


def rank(query: str, memories: Sequence[Memory]) -> tuple[tuple[Memory, float], ...]:
    """Memories that share a word with `query`, best first by BM25, scores in 0..1, ties by id."""
    asked = list(question_words(query))
    texts = [words(f"{memory.title} {' '.join(memory.keywords)} {memory.content}") or [""] for memory in memories]
    if not asked or not texts:
        return ()
    model: Any = BM25Plus(texts)
    # BM25+ gives every text a fixed sum per query word, in it or not; taken off, 0 means "no word in common".
    fixed = sum(model.idf.get(word, 0.0) * model.delta for word in asked)
    scores = [float(score) - fixed for score in model.get_scores(asked)]
    best = max(scores)
    found = [(memory, score / best) for memory, score in zip(memories, scores, strict=True) if score > 1e-9]
    return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].id)))


def _member(enum: type[E], value: str) -> E:
    try:
        return enum(value.lower())
    except ValueError as error:
        allowed = ", ".join(enum)
        raise InvalidRequest(f"{value!r} is not a {enum.__name__.lower()} of memories.", f"Use {allowed}.") from error


def _key(project: str) -> str:
    """A folder's root as the database can hold it: a path on disk need not be UTF-8."""
    return project.encode("utf-8", "backslashreplace").decode("utf-8")


def _checked(memory: Memory) -> Memory:
    if not memory.title or not memory.content:
        raise InvalidRequest("A memory needs a title and content.", "Give both.")
    if len(memory.content) > LONGEST_CONTENT:
        raise InvalidRequest(
            f"A memory may have {LONGEST_CONTENT:,} characters.", "Keep long text in a file and mention the file."
        )
    if memory.scope is Scope.PROJECT and not memory.project:
        raise InvalidRequest("A project memory needs a workspace folder.", "Open a folder, or use the scope 'user'.")
    return memory


def _not_found(memory_id: str) -> HaversackError:
    return HaversackError("memory_not_found", f"There is no memory {memory_id!r}.", "List the memories for their ids.")


def _row(memory: Memory) -> tuple[str | float, ...]:
    return (
        *(memory.id, memory.category.value, memory.title, memory.content, "|".join(memory.keywords)),
        *(memory.scope.value, memory.project, memory.created, memory.updated),
    )


def _memory(row: Sequence[object]) -> Memory:
    text = [str(value) for value in row]
    keywords = tuple(word for word in text[4].split("|") if word)
    return Memory(
        *(text[0], Category(text[1]), text[2], text[3], keywords, Scope(text[5]), text[6]),
        *(float(text[7]), float(text[8])),
    )
