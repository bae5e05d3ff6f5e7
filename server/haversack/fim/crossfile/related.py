"""Files that have to do with the cursor's file, and how much: imported, beside it, visited."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from haversack.fim.crossfile.imports import Import, family_of, imports_of, resolve
from haversack.fim.crossfile.library import Library
from haversack.fim.nouns import Cursor, Place

IMPORTED = 1.0
# An import of an import, as a base class's own module.
FURTHER = 0.3
VISITED = 0.3
# Files of one Go or Java package see each other's names without importing them.
PACKAGE = {"go": 0.8, "java": 0.5, "rust": 0.3, "c": 0.3, "python": 0.2, "script": 0.2}
PARTNER = 0.8
NAMED_BONUS = 0.5
# Files whose imports are followed, and files that are told of at all.
MOST_FOLLOWED = 10
MOST_FILES = 40
_TEST = re.compile(r"(^|/)(tests?|__tests__|testdata)/|(^|[._/])tests?([._]|$)|\.(test|spec)\.|Test\.java$|(^|/)test_")
# Imports of a text stand in its head, save for those inside functions.
_HEAD_LINES = 300


@dataclass(frozen=True, slots=True)
class Related:
    """`why` says what joins the file to the cursor's, in a few words."""

    path: str
    weight: float
    why: str


def related(cursor: Cursor, near: frozenset[str], places: Sequence[Place], library: Library) -> list[Related]:
    """Best first. `near` are the names around the cursor: an import that they take from counts more."""
    path, lines, language = cursor.file.path, cursor.file.lines, cursor.language
    paths = library.paths()
    found: dict[str, Related] = {}

    def add(other: str, weight: float, why: str) -> None:
        if other == path:
            return
        known = found.get(other)
        if known is None or known.weight < weight:
            found[other] = Related(other, weight, why)

    followed: list[str] = []
    for each in imports_of("".join(lines[:_HEAD_LINES]), language):
        for other in resolve(each, path, language, paths):
            bonus = NAMED_BONUS if near.intersection(_bound(each)) else 0.0
            add(other, IMPORTED + bonus, f"imported as {each.module}")
            followed.append(other)
    stem = posixpath.splitext(posixpath.basename(path))[0]
    family = family_of(language)
    is_test = bool(_TEST.search(path))
    ending = posixpath.splitext(path)[1]
    for other in paths.within(posixpath.dirname(path)):
        beside, its_ending = posixpath.splitext(posixpath.basename(other))
        if bool(_TEST.search(other)) and not is_test:
            continue
        if beside == stem:
            add(other, PARTNER, "of the same name")
        elif family in PACKAGE and (its_ending == ending or family in {"c", "script"}):
            add(other, PACKAGE[family], "of the same folder")
    for place in places:
        add(place.path, VISITED * (2 if place.edited else 1), "edited lately" if place.edited else "viewed lately")
    for other in list(dict.fromkeys(followed))[:MOST_FOLLOWED]:
        for each in imports_of("".join(library.lines(other)[:_HEAD_LINES]), language):
            for further in resolve(each, other, language, paths):
                add(further, FURTHER, f"imported by {posixpath.basename(other)}")
    return sorted(found.values(), key=lambda each: (-each.weight, each.path))[:MOST_FILES]


def _bound(each: Import) -> tuple[str, ...]:
    last = re.split(r"[./:]+", each.module.removesuffix(".h"))[-1]
    return (*each.names, last)
