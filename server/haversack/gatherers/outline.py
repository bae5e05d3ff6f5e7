"""Which lines of a file stand for the whole: signatures of its definitions, and the spans that speak of a question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from threading import Lock

from haversack.lines import merged
from haversack.types import Detail, Form
from haversack_index.lexical import cut, words
from haversack_index.types import Chunk, Symbol, SymbolKind

Lines = tuple[int, int]

# A header longer than this (a table of defaults, a long parameter list) says no more about the file.
LONGEST_SIGNATURE = 4
# A value tells less of its file than what can be called or made, unless the question names it.
VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT, SymbolKind.FIELD, SymbolKind.PROPERTY})
# What a file without any definition shows of itself: enough for a title and a first sentence.
HEAD_LINES = 8
# Spans of one large file for one question: about what a person reads of it before looking elsewhere.
MOST_SPAN_LINES = 160
MOST_SPANS = 8
# A chunk with less than this share of the best chunk's score is there by common words.
WEAKEST_SPAN = 0.3
# Headers shown of one definition's inner ones, as in the outline of a file.
MOST_HEADERS = 12
# An inner definition joins the best one only when it speaks of the question nearly as much.
STRONG_PART = 0.6
# Lines of one stretch of a long definition: a screen's worth around a match, as a person would scroll to.
WINDOW_LINES = 24
WINDOW_STEP = 3
MOST_WINDOWS = 3


def signature_lines(symbol: Symbol) -> Lines:
    """The lines of a definition's header, from the line with its name."""
    start = symbol.line
    end = max(start + 1, min(symbol.signature_end, start + LONGEST_SIGNATURE))
    return (start, end) if symbol.signature_end < symbol.span.end else (start, start + 1)


def outline(
    symbols: Sequence[Symbol], n_lines: int, asked: frozenset[str], limit: int, around: Iterable[Lines] = ()
) -> tuple[Lines, ...]:
    """Signature lines of at most `limit` symbols: containers of `around` first, then matches, then outer ones.

    A file without symbols shows its first lines. Sorted, not overlapping.
    """
    if not symbols:
        return ((0, min(n_lines, HEAD_LINES)),) if n_lines else ()
    return signatures(telling(symbols, asked, around)[:limit], n_lines)


def signatures(symbols: Iterable[Symbol], n_lines: int) -> tuple[Lines, ...]:
    return merged([signature_lines(symbol) for symbol in symbols], n_lines)


def telling(symbols: Sequence[Symbol], asked: frozenset[str], around: Iterable[Lines] = ()) -> list[Symbol]:
    """The symbols, those first that say most: containers of `around`, then matches of the question, then outer ones."""
    places = tuple(around)
    # No symbol holds a place that starts after the last start or ends before the first end of all of them.
    last_start = max((start for start, _ in places), default=-1)
    first_end = min((end for _, end in places), default=0)
    first: list[tuple[bool, int, int]] = []  # those the question has to do with: not a container, matches, place
    rest: list[Symbol] = []
    ordered = _ordered(symbols)
    for place, (symbol, start, end, name) in enumerate(ordered):
        holds = False
        if start <= last_start and end >= first_end:
            for a, b in places:
                holds = holds or (start <= a and b <= end)
        n_matches = 0 if asked.isdisjoint(name) else len(asked.intersection(name))
        if holds or n_matches:
            first.append((not holds, -n_matches, place))
        else:
            rest.append(symbol)
    return [ordered[place][0] for *_, place in sorted(first)] + rest


_Ordered = list[tuple[Symbol, int, int, tuple[str, ...]]]


def _ordered(symbols: Sequence[Symbol]) -> _Ordered:
    """The symbols as `telling` puts them for no question: with first line, end and the words of the name."""
    known = _known_orders.get(id(symbols))
    if known is not None and known[0] is symbols:
        return known[1]
    order = sorted(range(len(symbols)), key=lambda at: (symbols[at].kind in VALUES, symbols[at].depth, at))
    made = [(each, each.span.start, each.span.end, cut(each.name)) for each in map(symbols.__getitem__, order)]
    if isinstance(symbols, tuple):
        with _orders_lock:
            _known_orders[id(symbols)] = (symbols, made)
            while len(_known_orders) > KNOWN_ORDERS:
                del _known_orders[next(iter(_known_orders))]
    return made


# The symbols of files lately read, as many as the texts that are kept; each entry holds its tuple, so that no other
# can have the same identity meanwhile.
KNOWN_ORDERS = 512
_known_orders: dict[int, tuple[Sequence[Symbol], _Ordered]] = {}
_orders_lock = Lock()


def speaking_spans(chunks: Sequence[Chunk], asked: frozenset[str], at: int | None = None) -> tuple[Lines, ...]:
    """The chunks that hold the question's words, rare ones counting more, and the one around line `at`."""
    texts = [Counter(words(chunk.text)) for chunk in chunks]
    holders = Counter(word for text in texts for word in asked if word in text)

    def score(index: int) -> float:
        found = [word for word in asked if word in texts[index]]
        named = asked.intersection(part for name in chunks[index].names for part in words(name))
        weight = sum(math.log(1 + len(chunks) / holders[word]) for word in found)
        return weight + sum(math.log(1 + len(chunks) / holders[word]) for word in named if holders[word])

    scores = [score(index) for index in range(len(chunks))]
    best = max(scores, default=0.0)
    order = sorted(range(len(chunks)), key=lambda index: (-scores[index], index))
    spans = [chunk.span for chunk in chunks if at is not None and chunk.span.start <= at < chunk.span.end][-1:]
    taken = sum(span.end - span.start for span in spans)
    for index in order[:MOST_SPANS]:
        span = chunks[index].span
        if scores[index] <= 0 or scores[index] < WEAKEST_SPAN * best:
            break
        if taken + span.end - span.start > MOST_SPAN_LINES:
            continue
        spans.append(span)
        taken += span.end - span.start
    return merged([(span.start, span.end) for span in spans])


def shrinking(*forms: Form) -> tuple[Form, ...]:
    """The forms in the order given, without empty ones and those that save nothing over the one before."""
    kept: list[Form] = []
    for form in forms:
        size = _size(form)
        if size and (not kept or size < _size(kept[-1])):
            kept.append(form)
    return tuple(kept)


def definition_forms(
    lines: Sequence[str], whole: Lines, signature_end: int, symbols: Sequence[Symbol], asked: frozenset[str]
) -> tuple[Form, ...]:
    """Lines `whole` of a file in full; the definitions inside that speak of the question; headers alone."""
    start, end = whole
    inside = [each for each in symbols if start <= each.span.start and each.span.end <= end]
    header = (start, max(start + 1, min(signature_end, end)))
    headers = merged([header, *outline(inside, end, asked, MOST_HEADERS)] if inside else [header])
    parts = _speaking_parts(lines, whole, inside, asked) or _speaking_windows(lines, whole, asked)
    return shrinking(
        Form(Detail.FULL, (whole,)),
        Form(Detail.SPANS, merged([*headers, *parts]) if parts else ()),
        Form(Detail.SIGNATURE, headers),
    )


def _speaking_parts(lines: Sequence[str], whole: Lines, inside: Sequence[Symbol], asked: frozenset[str]) -> list[Lines]:
    """The innermost definitions of a larger one that hold most of the question's words, at most half of it."""
    spans = {(each.span.start, each.span.end) for each in inside} - {whole}
    innermost = [
        span for span in sorted(spans) if not any(span[0] <= o[0] and o[1] <= span[1] for o in spans if o != span)
    ]
    texts = [_held(lines[a:b], asked) for a, b in innermost]
    holders = Counter(word for text in texts for word in text)
    # A word that all parts hold does not tell them apart.
    scores = [sum(math.log((1 + len(texts)) / holders[word]) for word in text) for text in texts]
    best = max(scores, default=0.0)
    room = (whole[1] - whole[0]) // 2
    chosen: list[Lines] = []
    for score, span in sorted(zip(scores, innermost, strict=True), key=lambda pair: (-pair[0], pair[1])):
        if score <= 0 or score < STRONG_PART * best:
            break
        if span[1] - span[0] <= room:
            chosen.append(span)
            room -= span[1] - span[0]
    return chosen


def _held(lines: Iterable[str], asked: frozenset[str]) -> set[str]:
    return {word for line in lines for word in asked.intersection(_words_of_line(line))}


@lru_cache(maxsize=32_768)  # the same files answer one question after another: about 20 MB at most
def _words_of_line(line: str) -> frozenset[str]:
    return frozenset(words(line))


def _speaking_windows(lines: Sequence[str], whole: Lines, asked: frozenset[str]) -> list[Lines]:
    """The stretches of a long definition that hold most of the question's words: a table, a script in a string."""
    start, end = whole
    if end - start < 2 * WINDOW_LINES:
        return []
    held = [asked.intersection(_words_of_line(line)) for line in lines[start:end]]
    holders = Counter(word for line in held for word in line)
    weights = [sum(math.log((1 + len(held)) / holders[word]) for word in line) for line in held]
    sums = [0.0, *accumulate(weights)]
    windows = [
        (sums[min(at + WINDOW_LINES, len(held))] - sums[at], at)
        for at in range(0, len(held) - WINDOW_LINES // 2, WINDOW_STEP)
    ]
    best = max(windows, default=(0.0, 0))[0]
    chosen: list[int] = []
    for score, at in sorted(windows, key=lambda window: (-window[0], window[1])):
        if score <= 0 or score < WEAKEST_SPAN * best or len(chosen) == MOST_WINDOWS:
            break
        if all(abs(at - other) >= WINDOW_LINES for other in chosen):
            chosen.append(at)
    return [(start + at, min(end, start + at + WINDOW_LINES)) for at in chosen]


def _size(form: Form) -> int:
    return sum(end - start for start, end in form.spans)
