"""What of the file at hand goes into the prompt: so much before the cursor, so much after it.

Counting goes from the cursor outwards and ends where the room does, so the size of the file does not matter. The first
line moves in steps: while somebody types, a prompt begins as the one before it did, and servers that keep what they
computed for a prefix (llama.cpp, vLLM) can go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from haversack.fim.nouns import Cursor

# The first line of a window is a multiple of one of these, tried in order; the last one lets any line be first.
STEPS = (32, 8, 1)
# A step is too coarse where it leaves more of the room unused than this keeps.
LEAST_USED = 0.75
# No tokenizer makes a token of more characters on average; longer texts need not be counted to be too long.
LONGEST_TOKEN = 16


class Counter(Protocol):
    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Window:
    """`first` and `last` are lines of the file, `last` exclusive; the texts meet at the cursor.

    `prefix_tokens` and `suffix_tokens` are sums over lines. Whole lines, but for one that is too long by itself:
    `cut_before` and `cut_after` say that the file goes on beyond the window.
    """

    prefix: str
    suffix: str
    first: int
    last: int
    prefix_tokens: int
    suffix_tokens: int
    cut_before: bool
    cut_after: bool


def window(cursor: Cursor, counter: Counter, most_prefix: int, most_suffix: int, most: int | None = None) -> Window:
    """The text around the cursor: `most_prefix` and `most_suffix` tokens, what one leaves unused lent to the other.

    `most` caps both together; each side keeps its share of it.
    """
    total = most_prefix + most_suffix
    if most is not None and most < total:
        most_suffix = max(0, most) * most_suffix // total if total else 0
        most_prefix = max(0, most) - most_suffix
    after = _after(cursor, counter, most_suffix)
    before = _before(cursor, counter, most_prefix + (0 if after.cut else most_suffix - after.tokens))
    if not before.cut and after.cut:
        after = _after(cursor, counter, most_suffix + most_prefix - before.tokens)
    return Window(
        before.text,
        after.text,
        before.edge,
        after.edge,
        before.tokens,
        after.tokens,
        cut_before=before.cut,
        cut_after=after.cut,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    text: str
    tokens: int
    edge: int
    cut: bool


def _before(cursor: Cursor, counter: Counter, most: int) -> _Side:
    own, tokens, is_cut = _tail(cursor.line_before, counter, most)
    if is_cut:
        return _Side(own, tokens, cursor.line, cut=True)
    lines = cursor.file.lines
    costs: list[int] = []  # of the lines above the cursor's, nearest first
    for at in range(cursor.line - 1, -1, -1):
        cost = _cost(lines[at], counter, most - tokens)
        if cost is None:
            break
        tokens += cost
        costs.append(cost)
    first = cursor.line - len(costs)
    if first > 0:
        start = _stepped(first, cursor.line, costs, tokens, most)
        tokens -= sum(costs[cursor.line - start :])
        first = start
    return _Side("".join((*lines[first : cursor.line], own)), tokens, first, cut=first > 0)


def _stepped(first: int, end: int, costs: Sequence[int], tokens: int, most: int) -> int:
    """The first line at or below `first` that is a multiple of a step and leaves enough in."""
    for step in STEPS:
        start = -(-first // step) * step
        if start <= end and tokens - sum(costs[end - start :]) >= LEAST_USED * most:
            return start
    return first


def _after(cursor: Cursor, counter: Counter, most: int) -> _Side:
    own, tokens, is_cut = _head(cursor.line_after, counter, most)
    lines = cursor.file.lines
    edge = min(cursor.line + 1, len(lines))
    if is_cut:
        return _Side(own, tokens, edge, cut=True)
    while edge < len(lines):
        cost = _cost(lines[edge], counter, most - tokens)
        if cost is None:
            break
        tokens += cost
        edge += 1
    return _Side("".join((own, *lines[cursor.line + 1 : edge])), tokens, edge, cut=edge < len(lines))


def _cost(line: str, counter: Counter, room: int) -> int | None:
    """What the line costs; None when that is more than the room."""
    if len(line) > LONGEST_TOKEN * max(room, 0):
        return None
    cost = counter.count(line)
    return cost if cost <= room else None


def _tail(text: str, counter: Counter, most: int) -> tuple[str, int, bool]:
    """The longest end of a line that fits (about: it is found by halving), its cost, and whether it was cut."""
    kept = _longest(len(text), lambda size: _cost(text[len(text) - size :], counter, most) is not None)
    part = text[len(text) - kept :]
    return part, counter.count(part), kept < len(text)


def _head(text: str, counter: Counter, most: int) -> tuple[str, int, bool]:
    kept = _longest(len(text), lambda size: _cost(text[:size], counter, most) is not None)
    part = text[:kept]
    return part, counter.count(part), kept < len(text)


class _Fits(Protocol):
    def __call__(self, size: int, /) -> bool: ...


def _longest(length: int, fits: _Fits) -> int:
    """The largest size that fits. Sizes that are clearly too long cost nothing to reject (`_cost`)."""
    if fits(length):
        return length
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
