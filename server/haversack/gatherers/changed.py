"""What a diff is about: the definitions that hold the changed lines, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from haversack.gatherers.symbols import COMMON_NAME, symbol_candidate, users_of
from haversack.types import Candidate, Plan, Source
from haversack.workspace import Defined, Workspace
from haversack_index.text import split_lines

# A change over more definitions than this is a rewrite; its diff shows them anyway.
MOST_CHANGED = 20
# Before every user of it, which are worth half of what they use.
RELEVANCE = 1.0
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)


def changed_definitions(
    folder: str, diffs: Mapping[str, str], plan: Plan, workspace: Workspace
) -> tuple[Candidate, ...]:
    """For diffs by `folder/path`: the innermost definitions that hold a changed line, then the users of their names."""
    found: dict[str, Candidate] = {}
    for origin, text in diffs.items():
        if not origin.startswith(f"{folder}/"):
            continue
        path = origin.removeprefix(f"{folder}/")
        file = workspace.read(folder, path)
        if file is None or text.startswith("new file"):
            continue  # a new file stands in its diff whole
        symbols = workspace.symbols(folder, path)
        for line in changed_lines(text):
            around = [symbol for symbol in symbols if symbol.span.start <= line < symbol.span.end]
            if around and len(found) < MOST_CHANGED:
                symbol = min(around, key=lambda each: (each.span.end - each.span.start, -each.depth))
                why = f"{symbol.name} holds lines you changed"
                candidate = symbol_candidate(Defined(file, symbol), RELEVANCE, why, plan, workspace, rank=len(found))
                found.setdefault(candidate.id, candidate)
    definitions = list(found.values())
    # The users of a name that many things have (a hook, `main`) are mostly users of others.
    names = [
        name
        for name in dict.fromkeys(each.heading[-1] for each in definitions)
        if len(workspace.definitions(folder, (name,), COMMON_NAME + 1)) <= COMMON_NAME
    ]
    for user in users_of(folder, names, definitions, plan, workspace):
        found.setdefault(user.id, replace(user, why=f"{user.why}, which you changed"))
    return tuple(replace(each, source=Source.DIFF) for each in found.values())


def changed_lines(diff: str) -> list[int]:
    """Lines of the new text that a unified diff adds, and those before which it removes some."""
    found: dict[int, None] = {}
    line = -1
    for text in split_lines(diff):
        hunk = _HUNK.match(text)
        if hunk:
            line = int(hunk[1]) - 1
        elif line >= 0 and text.startswith(("+", "-")):
            found[line] = None
            line += text.startswith("+")
        elif line >= 0 and not text.startswith("\\"):
            line += 1
    return list(found)
