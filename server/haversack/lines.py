"""Sets of whole lines: `(start, end)` from 0, end exclusive. In a normal set they are sorted, apart, and not empty."""

from __future__ import annotations

from collections.abc import Iterable

Spans = tuple[tuple[int, int], ...]


def merged(spans: Iterable[tuple[int, int]], n_lines: int | None = None) -> Spans:
    """The normal set that covers the same lines, cut at the end of the file where that is given; empty ones vanish."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        stop = end if n_lines is None else min(end, n_lines)
        if start >= stop:
            continue
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], stop))
        else:
            result.append((start, stop))
    return tuple(result)
