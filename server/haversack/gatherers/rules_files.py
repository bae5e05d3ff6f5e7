"""Rules that a project keeps for models in files: `AGENTS.md` and its like, at the top and near the files in question.

They go into the system message, whose bytes then stay the same while the files in question stay in the same folders.
Their order is from the outside in; their share of tokens is given from the inside out, as the nearest say most.
"""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from haversack.config import walk_rules
from haversack.gatherers.team import in_question
from haversack.places import relative_to
from haversack.policy.injection import reads_like_orders
from haversack.token_estimate import by_characters
from haversack.types import Candidate, Folder, Kind, Plan, Problem, Reason, Source
from haversack.workspace import Workspace
from haversack_index.types import SkipReason
from haversack_index.verdicts import Skipped
from haversack_index.walk import Checker

AT_THE_TOP = ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".cursorrules")
IN_FOLDERS = ("AGENTS.md", "CLAUDE.md")
DIRECTORY = ".haversack/rules"
# Files looked at, and those that one may name by `@path`: more is no text that a person keeps in mind.
MOST_FILES, MOST_INCLUDES = 32, 8
# Rules must be in, so they get no more than this part of a window or of a budget that the user has narrowed.
PART_OF_WINDOW, PART_OF_BUDGET = 8, 4
MOST_CHARACTERS = 12
CUT = "[the rest of this file, {} lines, is left out]\n"
_INCLUDE = re.compile(r"@([^\s@]+)\s*")


@dataclass(slots=True)
class Found:
    """A file of rules. `text` is as it goes out, includes in their place; `origins` are all files in it."""

    folder: str
    path: str
    text: str
    origins: tuple[str, ...]
    depth: int  # of its folder; 0 at the top
    refused: Reason | None = None
    n_cut: int = 0

    @property
    def name(self) -> str:
        return f"{self.folder}/{self.path}"


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    return await workspace.run(rules_files, plan, workspace), ()


def rules_files(plan: Plan, workspace: Workspace) -> tuple[Candidate, ...]:
    """One candidate for each file; those that say nothing new, or found no room, are refused."""
    found = [each for folder in workspace.folders_in_play(plan.request.folder) for each in _of(folder, plan, workspace)]
    _refuse_copies(found)
    _fit(found, most_tokens(plan, workspace))
    many = len(workspace.snapshot.folders) > 1
    return tuple(_candidate(each, place, len(found), many) for place, each in enumerate(found))


def most_tokens(plan: Plan, workspace: Workspace) -> int:
    settings, budget = workspace.snapshot.settings, plan.request.budget_tokens
    limits = [settings.rules_max_tokens]
    if settings.context_window:
        limits.append(settings.context_window // PART_OF_WINDOW)
    if budget is not None:
        limits.append(budget // PART_OF_BUDGET)
    return min(limits)


def _of(folder: Folder, plan: Plan, workspace: Workspace) -> list[Found]:
    """A folder's files from the outside in, without includes that are files of their own."""
    reader = _Reader(folder, workspace)
    found: dict[str, tuple[str, int]] = {}  # real path → text, depth
    for name in _names(folder, plan, workspace):
        path = reader.real(name)
        text = reader.text(path) if path is not None and path not in found else None
        if path is not None and text is not None:
            found[path] = (text, name.count("/") if posixpath.basename(name) in IN_FOLDERS else 0)
        if len(found) >= MOST_FILES:
            break
    return [_with_includes(reader, path, text, depth, frozenset(found)) for path, (text, depth) in found.items()]


def _names(folder: Folder, plan: Plan, workspace: Workspace) -> Iterator[str]:
    yield from AT_THE_TOP
    listed: set[str] = set()
    directory = os.path.join(folder.root, DIRECTORY)
    if os.path.isdir(directory):
        with os.scandir(directory) as entries:
            listed.update(entry.name for entry in entries)
    unsaved = (each.path for each in workspace.snapshot.documents.values() if each.folder == folder.key)
    listed.update(posixpath.basename(path) for path in unsaved if path and posixpath.dirname(path) == DIRECTORY)
    yield from (f"{DIRECTORY}/{name}" for name in sorted(listed) if name.endswith(".md"))
    around = {
        parent.as_posix()
        for place in in_question(plan, workspace)
        if place.folder == folder.key and place.path
        for parent in (Path(place.path) / "x" if place.is_folder else Path(place.path)).parents
    }
    for parent in sorted(around - {"."}, key=lambda each: (each.count("/"), each)):
        yield from (f"{parent}/{name}" for name in IN_FOLDERS)


class _Reader:
    """One folder's files, as rules may be read: inside it, not ignored, and with hidden names."""

    def __init__(self, folder: Folder, workspace: Workspace) -> None:
        self.folder = folder
        self.workspace = workspace
        documents = workspace.snapshot.documents.values()
        self._open = {each.path for each in documents if each.folder == folder.key}
        rules = replace(walk_rules(workspace.snapshot.settings), include_hidden=True)
        self._checker = Checker(Path(folder.root), rules)

    def real(self, name: str) -> str | None:
        """Where a name leads, links followed: `CLAUDE.md` is often one to `AGENTS.md`. None outside the folder."""
        try:
            return relative_to(
                os.path.realpath(os.path.join(self.folder.root, name)).replace(os.sep, "/"), self.folder.root
            )
        except (OSError, ValueError):
            return None

    def text(self, path: str) -> str | None:
        """What the file says now, an open buffer first; None when it is not there, empty, or not to be read."""
        if not os.path.lexists(os.path.join(self.folder.root, path)) and path not in self._open:
            return None
        file = self.workspace.read(self.folder.key, path)
        if file is None or not (text := "".join(file.lines)).strip():
            return None
        verdict = self._checker.check(path)
        if isinstance(verdict, Skipped) and verdict.reason is not SkipReason.GONE:
            return None
        return text


def _with_includes(reader: _Reader, path: str, text: str, depth: int, known: frozenset[str]) -> Found:
    """A line `@path` brings that file's text, one level deep; one that is a file of rules itself comes there."""
    folder, lines = reader.folder.key, text.replace("\r\n", "\n").split("\n")
    origins, fenced = [f"{folder}/{path}"], False
    for at, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        match = None if fenced else _INCLUDE.fullmatch(line.strip())
        if match is None or len(origins) > MOST_INCLUDES or match[1].startswith(("/", "~")):
            continue
        target = reader.real(posixpath.join(posixpath.dirname(path), match[1]))
        if target in known:
            lines[at] = ""
        elif target is not None and (included := reader.text(target)) is not None:
            lines[at] = included.rstrip("\n")
            origins.append(f"{folder}/{target}")
    return Found(folder, path, "\n".join(lines).strip("\n") + "\n", tuple(origins), depth)


def _refuse_copies(found: Sequence[Found]) -> None:
    said: set[str] = set()
    for each in found:
        body = each.text.strip()
        if not body or body in said:
            each.refused = Reason.DUPLICATE
        said.add(body)


def _fit(found: Sequence[Found], most: int) -> None:
    """Cuts or refuses what is over `most` tokens, the nearest files and then the first ones served first."""
    left = most
    for each in sorted((each for each in found if each.refused is None), key=lambda each: -each.depth):
        lines = each.text.split("\n")[:-1]
        # Nothing takes more characters a token than this; a giant is not counted over and over.
        ends = list(accumulate(len(line) + 1 for line in lines))
        kept = bisect_right(ends, MOST_CHARACTERS * left)
        while kept and by_characters(_cut(lines, kept)) > left:
            kept -= max(1, kept // 8)
        if not kept:
            each.refused = Reason.OVER_BUDGET
            continue
        each.n_cut = len(lines) - kept
        each.text = _cut(lines, kept)
        left -= by_characters(each.text)


def _cut(lines: Sequence[str], kept: int) -> str:
    text = "".join(f"{line}\n" for line in lines[:kept])
    return text if kept == len(lines) else text + CUT.format(len(lines) - kept)


def _candidate(found: Found, place: int, n_files: int, many_folders: bool) -> Candidate:
    relevance = 1 - place / (10 * n_files)  # in this order in the prompt
    return Candidate(
        id=f"rules:{found.name}",
        source=Source.RULES,
        kind=Kind.RULE,
        title=found.name if many_folders else found.path,
        relevance=relevance,
        parts=(("rules", relevance),),
        why="rules of the project" + (f", cut by {found.n_cut} lines" if found.n_cut else ""),
        required=found.refused is None,
        text=found.text if found.refused is None else "",
        origins=found.origins,
        flags=(*(("cut",) if found.n_cut else ()), *(("instruction-like",) if reads_like_orders(found.text) else ())),
        refused=() if found.refused is None else (found.refused,),
    )
