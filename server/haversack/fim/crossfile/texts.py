"""Names and their parts in texts, kept by the identity of the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
NO_NAMES: frozenset[str] = frozenset()
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_KEPT: dict[str, tuple[tuple[frozenset[str], ...], frozenset[str]]] = {}
# Files whose names are kept, some 20 kB each.
_MOST_KEPT = 1_000


@lru_cache(maxsize=20_000)
def parts_of(name: str) -> frozenset[str]:
    """`readTimeout_ms` is read, timeout, ms."""
    return frozenset(part.lower() for part in _PARTS.findall(name) if len(part) > 1)


def names_by_line(lines: Sequence[str], identity: str) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Names of each line, and of all of them."""
    known = _KEPT.get(identity) if identity else None
    if known is None:
        by_line = tuple(frozenset(match[0] for match in NAME.finditer(line)) for line in lines)
        known = (by_line, NO_NAMES.union(*by_line))
        if identity:
            _KEPT[identity] = known
            while len(_KEPT) > _MOST_KEPT:
                _KEPT.pop(next(iter(_KEPT)), None)
    return known
