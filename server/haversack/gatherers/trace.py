"""The definitions that a pasted stack trace or compiler message points at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from haversack.types import FileText, Plan
from haversack.workspace import Defined, Workspace
from haversack_index.types import Symbol

# A trace this long repeats itself; its innermost frames tell the most.
MOST_FRAMES = 12
# Of a long paste this much is read.
MOST_READ = 40_000
# Files of one name that are compared with a frame.
SAME_NAMES = 20
_PYTHON = re.compile(r'File "(?P<path>[^"\n]{1,300})", line (?P<line>\d{1,7})(?:, in (?P<name>[\w.<>]{1,100}))?')
_OTHER = re.compile(
    r"(?<![\w./\\@~+-])(?:file:/{2,3})?(?P<path>[\w./\\@~+-]{1,300}\.[A-Za-z]{1,6}):(?P<line>\d{1,7})\b"
)
# `at name (path:1:2)` before a place; in Go the name ends the line above it.
_NAME_BEFORE = re.compile(r"(?:\bat (?:async )?|\.)(?P<name>[A-Za-z_$][\w$]*)(?: ?\(|\([^\n]*\)\n\s*)(?:file:/{2,3})?$")


@dataclass(frozen=True, slots=True)
class Frame:
    """One place of a trace as written: a path of the machine it ran on, a line from 0, a function if it is told."""

    path: str
    line: int
    name: str


def frames(text: str) -> list[Frame]:
    """The places a text points at, the innermost first, each once."""
    read = text[:MOST_READ]
    # Python tells the innermost last, everybody else first.
    found = [Frame(m["path"], int(m["line"]) - 1, _last_name(m["name"])) for m in _PYTHON.finditer(read)][::-1]
    for match in _OTHER.finditer(read):
        before = _NAME_BEFORE.search(read[max(0, match.start() - 200) : match.start()])
        found.append(Frame(match["path"].replace("\\", "/"), int(match["line"]) - 1, before["name"] if before else ""))
    return list(dict.fromkeys(found))[:MOST_FRAMES]


def in_trace(folder: str, plan: Plan, workspace: Workspace) -> Iterator[tuple[Defined, Frame]]:
    """The definitions of a folder that the frames of the question's text stand in, innermost first."""
    for frame in frames(plan.request.text):
        found = _place(folder, frame, workspace)
        if found is not None:
            yield found, frame


def _last_name(name: str | None) -> str:
    return (name or "").rsplit(".", 1)[-1].strip("<>")


def _place(folder: str, frame: Frame, workspace: Workspace) -> Defined | None:
    index = workspace.indexes.get(folder)
    parts = [part for part in frame.path.split("/") if part not in ("", ".", "..")]
    if index is None or not parts:
        return None
    same = [path for path in index.paths_matching(parts[-1], SAME_NAMES) if path.rsplit("/", 1)[-1] == parts[-1]]
    best = max(same, key=lambda path: (_shared(path.split("/"), parts), -len(path)), default="")
    file = workspace.read(folder, best) if best else None
    if file is None:
        return None
    is_whole = _shared(best.split("/"), parts) in (len(parts), best.count("/") + 1)
    is_sure = is_whole or _shared(best.split("/"), parts) > 1
    symbol = _symbol(file, frame, workspace)
    # A file of a library may be called as one of ours: then its function has to be ours as well.
    return Defined(file, symbol) if symbol is not None and (is_sure or symbol.name == frame.name) else None


def _shared(path: list[str], other: list[str]) -> int:
    """How many last parts two paths have in common."""
    pairs = zip(reversed(path), reversed(other), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(path), len(other)))


def _symbol(file: FileText, frame: Frame, workspace: Workspace) -> Symbol | None:
    """The definition the frame names, nearest to its line; else the innermost at its line, which may have moved."""
    symbols = workspace.symbols(file.folder, file.path)
    named = [each for each in symbols if frame.name and each.name == frame.name]
    if named:
        return min(
            named, key=lambda each: (not each.span.start <= frame.line < each.span.end, abs(each.line - frame.line))
        )
    around = [each for each in symbols if each.span.start <= frame.line < each.span.end]
    return min(around, key=lambda each: (each.span.end - each.span.start, -each.depth), default=None)
