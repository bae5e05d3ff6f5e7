"""Whether two patterns of paths can match the same file; in doubt they can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=65_536)
def may_overlap(one: str, other: str) -> bool:
    """False only when no path matches both, as `src/auth/**` and `docs/*.md`. Letter case does not tell them apart."""
    return _paths_meet(_parts(one), _parts(other))


@lru_cache(maxsize=4_096)
def _parts(pattern: str) -> tuple[str, ...]:
    """The components that a whole path has; `**` stands for any number of them. As in `.gitignore`, a pattern without
    a slash is found at any depth, and one that matches a folder matches everything in it."""
    body = pattern.strip().casefold()
    anchored = "/" in body.rstrip("/")
    parts = [part for part in body.split("/") if part]
    whole = [*([] if anchored else ["**"]), *parts, "**"]
    return tuple(part for n, part in enumerate(whole) if part != "**" or n == 0 or whole[n - 1] != "**")


def _paths_meet(one: Sequence[str], other: Sequence[str]) -> bool:
    # Row by row: `reach` has each prefix length of `other` that what was read of `one` can meet.
    reach = _skipping({0}, other)
    for part in one:
        if part == "**":
            # Zero or more components: of `other` anything from here on may be taken.
            reach = set(range(min(reach, default=len(other) + 1), len(other) + 1))
        else:
            taken = {n + 1 for n in reach if n < len(other) and other[n] != "**" and _names_meet(part, other[n])}
            held = {n for n in reach if n < len(other) and other[n] == "**"}
            reach = _skipping(taken | held, other)
        if not reach:
            return False
    return len(other) in reach


def _skipping(reach: set[int], other: Sequence[str]) -> set[int]:
    """With every `**` that may stand for nothing stepped over."""
    for n, part in enumerate(other):
        if part == "**" and n in reach:
            reach.add(n + 1)
    return reach


_SPECIAL = re.compile(r"[*?\[\\]")
_ELEMENT = re.compile(r"\*+|\\.|\[!?\]?[^\]]*\]|.", re.DOTALL)


def _names_meet(one: str, other: str) -> bool:
    """The same for two components. A class counts as any character."""
    if one == other:
        return True
    if not _SPECIAL.search(one) and not _SPECIAL.search(other):
        return False
    left, right = _elements(one), _elements(other)
    reach = _skipping_stars({0}, right)
    for element in left:
        if element == "*":
            reach = set(range(min(reach), len(right) + 1))
        else:
            taken = {n + 1 for n in reach if n < len(right) and right[n] != "*" and _same(element, right[n])}
            held = {n for n in reach if n < len(right) and right[n] == "*"}
            reach = _skipping_stars(taken | held, right)
        if not reach:
            return False
    return len(right) in reach


def _elements(name: str) -> tuple[str, ...]:
    """`*` for any characters, "" for one that nobody can tell, else the character itself."""
    found: list[str] = []
    for element in _ELEMENT.findall(name):
        if element.startswith("*"):
            found.append("*")
        elif element == "?" or (element.startswith("[") and len(element) > 1):
            found.append("")
        else:
            found.append(element[-1])
    return tuple(found)


def _skipping_stars(reach: set[int], right: Sequence[str]) -> set[int]:
    for n, element in enumerate(right):
        if element == "*" and n in reach:
            reach.add(n + 1)
    return reach


def _same(one: str, other: str) -> bool:
    return one == other or not one or not other
