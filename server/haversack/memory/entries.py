"""One memory, and what makes sense as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from haversack.types import InvalidRequest

E = TypeVar("E", bound=StrEnum)

# A note, not a document: what is longer belongs in a file of the workspace.
LONGEST_CONTENT = 20_000
LONGEST_TITLE = 200
MOST_KEYWORDS, LONGEST_KEYWORD = 32, 64
MOST_ORIGINS, LONGEST_ORIGIN = 100, 4_096

# Ids become part of file names, which any member of a team may write.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Category(StrEnum):
    KNOWLEDGE = "knowledge"
    RULE = "rule"
    EXPERIENCE = "experience"


class Scope(StrEnum):
    USER = "user"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Memory:
    """One note. `project` is the workspace folder's root for project scope, else ""; times are seconds, UTC.

    `private`: never in a prompt for a remote model, never exported. `origins`: files, as `folder/path`, that the note
    was derived from; it is as restricted as they are.
    """

    id: str
    category: Category
    title: str
    content: str
    keywords: tuple[str, ...]
    scope: Scope
    project: str
    created: float
    updated: float
    private: bool = False
    origins: tuple[str, ...] = ()


def member(enum: type[E], field: str, value: str) -> E:
    """The member that `value` names, in letters of any case. Raises `InvalidRequest` that names the field."""
    try:
        return enum(value.lower())
    except ValueError as error:
        allowed = ", ".join(enum)
        message = f"{field}: {value[:80]!r} is not a {enum.__name__.lower()} of memories."
        raise InvalidRequest(message, f"Use {allowed}.", field=field) from error


def checked(memory: Memory) -> Memory:
    """The memory itself, if it may be kept. Raises `InvalidRequest` that names the field that is wrong."""
    if not _ID.fullmatch(memory.id):
        raise _wrong("id", "is up to 64 letters, digits, `-` and `_`")
    _bounded("title", memory.title, LONGEST_TITLE)
    _bounded("content", memory.content, LONGEST_CONTENT, "Keep long text in a file and mention the file.")
    if _CONTROL.search(memory.title):
        raise _wrong("title", "is one line without control characters")
    _words("keywords", memory.keywords, MOST_KEYWORDS, LONGEST_KEYWORD)
    if any("|" in word for word in memory.keywords):
        raise _wrong("keywords", "may not contain `|`")
    _words("origins", memory.origins, MOST_ORIGINS, LONGEST_ORIGIN)
    if memory.scope is Scope.PROJECT and not memory.project:
        remedy = "Open a folder, or use the scope 'user'."
        raise InvalidRequest("scope: a project memory needs a workspace folder.", remedy, field="scope")
    return memory


def _bounded(field: str, value: str, most: int, remedy: str = "") -> None:
    if not value.strip():
        raise _wrong(field, "may not be empty")
    if len(value) > most:
        raise _wrong(field, f"may have {most:,} characters, not {len(value):,}", remedy)


def _words(field: str, values: Sequence[str], most: int, longest: int) -> None:
    if len(values) > most:
        raise _wrong(field, f"may have {most:,} entries, not {len(values):,}")
    for place, value in enumerate(values):
        if not value.strip() or len(value) > longest or _CONTROL.search(value):
            raise _wrong(f"{field}[{place}]", f"is one line of 1 to {longest:,} characters")


def _wrong(field: str, what: str, remedy: str = "") -> InvalidRequest:
    return InvalidRequest(f"{field} of a memory {what}.", remedy, field=field)
