"""Project memories as files that a team can read, review and commit: one Markdown file for each, under a header.

    ---
    id: 3f2a…
    category: Rule
    title: Money is decimal
    keywords: money | rounding
    created: 2026-08-01T09:30:00Z
    updated: 2026-08-02T10:00:00Z
    ---

    Amounts are decimals, never floats.

Only `category` and `title` must be there. Without `id` the file's name stands for it; without `updated` the file's
text always wins over the note that is kept here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from haversack.memory.entries import LONGEST_CONTENT, LONGEST_TITLE, Category, Memory, Scope, checked, member
from haversack.memory.store import MOST_MEMORIES
from haversack.types import HaversackError, InvalidRequest
from haversack_index.walk import CannotRead, read_file

# Where a folder keeps them, and so what a team commits.
DIRECTORY = ".haversack/memory"
# A header, and content in the widest letters of UTF-8.
LARGEST_FILE = 4 * LONGEST_CONTENT + 64_000
_FENCE = "---"
_KEYS = frozenset({"id", "category", "title", "keywords", "created", "updated", "origin"})


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file that no memory could be read from. `path` is relative to the workspace folder."""

    path: str
    reason: str


def render(memory: Memory) -> str:
    """The file's text. Equal memories give equal bytes."""
    header = [
        f"id: {memory.id}",
        f"category: {memory.category.value.capitalize()}",
        f"title: {memory.title}",
        *([f"keywords: {' | '.join(memory.keywords)}"] if memory.keywords else []),
        f"created: {_instant(memory.created)}",
        f"updated: {_instant(memory.updated)}",
        *(f"origin: {each}" for each in memory.origins),
    ]
    lines = "\n".join(header)
    return f"{_FENCE}\n{lines}\n{_FENCE}\n\n{memory.content}\n"


def parse(name: str, text: str, project: str, now: float) -> Memory:
    """The memory in a file called `name`. Raises `InvalidRequest` that says what is wrong, by line where it can."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise InvalidRequest(f"line 1 is not {_FENCE}, which begins the header")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise InvalidRequest(f"no line {_FENCE} ends the header")
    fields, origins = _header(lines[1:end])
    updated = _seconds("updated", fields["updated"]) if "updated" in fields else now
    return checked(
        Memory(
            fields.get("id") or hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest(),
            member(Category, "category", fields.get("category", "")),
            fields.get("title", ""),
            "\n".join(lines[end + 1 :]).strip(),
            tuple(dict.fromkeys(word for each in fields.get("keywords", "").split("|") if (word := each.strip()))),
            Scope.PROJECT,
            project,
            _seconds("created", fields["created"]) if "created" in fields else updated,
            updated,
            origins=tuple(dict.fromkeys(origins)),
        )
    )


def write(root: Path, memories: Sequence[Memory]) -> tuple[str, ...]:
    """Writes each memory's file into the folder, and gives the paths. A file of a memory that changed its title goes.

    Files of other memories stay: they may be a teammate's that were not imported yet.
    """
    folder = _directory(root, create=True)
    names = {memory.id: _name(memory) for memory in memories}
    for path in sorted(folder.glob("*.md")):
        if path.name in names.values() or path.is_symlink():
            continue
        with contextlib.suppress(OSError, InvalidRequest, UnicodeDecodeError):
            if parse(path.name, path.read_text("utf-8"), str(root), 0.0).id in names:
                path.unlink()
    for memory in memories:
        _replace(folder / names[memory.id], render(memory))
    return tuple(f"{DIRECTORY}/{names[memory.id]}" for memory in memories)


def read(root: Path, project: str, now: float) -> tuple[tuple[Memory, ...], tuple[BadFile, ...]]:
    """The memories in the folder's files, in the order of their names, and the files that are none."""
    folder = _directory(root, create=False)
    names = sorted(path.name for path in folder.glob("*.md")) if folder.is_dir() else []
    found: dict[str, Memory] = {}
    bad: list[BadFile] = []
    for name in names:
        path = f"{DIRECTORY}/{name}"
        if len(found) >= MOST_MEMORIES:
            bad.append(BadFile(path, f"there are more than {MOST_MEMORIES:,} files"))
            continue
        try:
            memory = parse(name, read_file(root, path, LARGEST_FILE).decode("utf-8"), project, now)
        except CannotRead as error:
            bad.append(BadFile(path, f"it is {error.reason.value}"))
        except UnicodeDecodeError:
            bad.append(BadFile(path, "it is not UTF-8"))
        except InvalidRequest as error:
            bad.append(BadFile(path, error.message))
        else:
            if memory.id in found:
                bad.append(BadFile(path, f"its id {memory.id} is that of another file"))
            else:
                found[memory.id] = memory
    return tuple(found.values()), tuple(bad)


def _header(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    fields: dict[str, str] = {}
    origins: list[str] = []
    for number, line in enumerate(lines, 2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or key not in _KEYS:
            raise InvalidRequest(f"line {number}: expected one of {', '.join(sorted(_KEYS))}, and a colon")
        if key == "origin":
            origins.append(value)
        elif key in fields:
            raise InvalidRequest(f"line {number}: {key} is given twice")
        else:
            fields[key] = value
    return fields, origins


def _name(memory: Memory) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", memory.title[:LONGEST_TITLE].lower()).strip("-")[:60].rstrip("-")
    return f"{words}-{memory.id[:8]}.md" if words else f"{memory.id[:8]}.md"


def _directory(root: Path, *, create: bool) -> Path:
    """The folder of the files. Raises `path_outside_workspace` when it is, or is in, a link that leads elsewhere."""
    folder = root / DIRECTORY
    real = Path(os.path.realpath(folder))
    if real != Path(os.path.realpath(root)) / DIRECTORY:
        message = f"{DIRECTORY} is a link that leads elsewhere."
        raise HaversackError("path_outside_workspace", message, "Put a real folder in its place.", path=DIRECTORY)
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _replace(path: Path, text: str) -> None:
    """Another process may read at any moment: the file appears whole or not at all. What is the same stays."""
    data = text.encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        if not path.is_symlink() and path.read_bytes() == data:
            return
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
    os.chmod(name, 0o644)
    os.replace(name, path)


def _instant(seconds: float) -> str:
    """UTC, cut to milliseconds: a file never seems newer than the note it was written from."""
    whole = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    thousandths = int((seconds - int(seconds)) * 1_000)
    return f"{whole}.{thousandths:03}Z" if thousandths else f"{whole}Z"


def _seconds(field: str, text: str) -> float:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(f"{field}: {text[:40]!r} is not a time such as 2026-08-01T09:30:00Z") from None
    return (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()
