"""Lines of other files that are likely to hold what comes next, each with its score: signatures, and windows alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from haversack.fim.crossfile.library import Library
from haversack.fim.crossfile.related import Related
from haversack.fim.crossfile.texts import NO_NAMES, names_by_line, parts_of
from haversack_index.types import Symbol, SymbolKind

# A header longer than this shows its first lines.
LONGEST_SIGNATURE = 4
WINDOW_LINES = 10
WINDOW_STEP = 5
MOST_WINDOWS = 24
# What a signature's score is made of, set by judgement; benchmarks/fim says what it gives.
NEAR_NAME = 1.2
OF_TYPE = 2.5
IN_NEAR_CLASS = 0.8
ALIKE = 1.0
POPULAR = 0.35
# A name with an underscore in front is its own file's business.
PRIVATE = 0.35
_VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.CONSTANT, SymbolKind.FIELD, SymbolKind.PROPERTY})


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines from 0, end exclusive. `parts` is how the score came about."""

    path: str
    start: int
    end: int
    score: float
    why: str
    parts: tuple[tuple[str, float], ...]
    is_signature: bool


@dataclass(frozen=True, slots=True)
class Near:
    """What the search goes by: names around the cursor, weightier the nearer, and types before its dot."""

    weights: Mapping[str, float]
    types: tuple[str, ...]
    present: frozenset[str]  # names of the whole buffer

    @property
    def parts(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, weight in self.weights.items():
            for part in parts_of(name):
                found[part] = max(found.get(part, 0.0), weight)
        return found


def signatures(near: Near, files: Sequence[Related], library: Library) -> list[Piece]:
    """Headers of what related files define, best first."""
    weights = {each.path: each for each in files}
    used: Counter[str] = Counter()
    for each in files:
        used.update(names_by_line(library.lines(each.path), library.identity(each.path))[1])
    near_parts = near.parts
    found: list[Piece] = []
    for each in files:
        n_lines = len(library.lines(each.path))
        for symbol in library.symbols(each.path):
            if symbol.kind is SymbolKind.HEADING or symbol.span.end > n_lines:
                continue
            piece = _signature(symbol, near, near_parts, weights[each.path], used[symbol.name])
            if piece is not None:
                found.append(piece)
    return sorted(found, key=lambda each: (-each.score, each.path, each.start))


def _signature(
    symbol: Symbol, near: Near, near_parts: Mapping[str, float], file: Related, n_users: int
) -> Piece | None:
    holder = symbol.container[-1] if symbol.container else ""
    of_type = OF_TYPE if holder and holder in near.types else 0.0
    own = NEAR_NAME * near.weights.get(symbol.name, 0.0)
    member = IN_NEAR_CLASS * near.weights.get(holder, 0.0) if holder else 0.0
    parts = parts_of(symbol.name)
    alike = ALIKE * sum(near_parts.get(part, 0.0) for part in parts) / len(parts) if parts else 0.0
    popular = POPULAR * math.log2(max(1, n_users))
    factor = file.weight
    if symbol.name.startswith("_") and not of_type:
        factor *= PRIVATE
    if symbol.name in near.present:
        # Its name is before the model's eyes: its shape is news, its being there is not.
        alike, popular = 0.5 * alike, 0.5 * popular
        factor *= 0.6
    score = factor * (0.3 + own + member + alike + popular) + of_type
    start, end = symbol.line, max(symbol.line + 1, min(symbol.signature_end, symbol.line + LONGEST_SIGNATURE))
    if symbol.signature_end >= symbol.span.end or symbol.kind in _VALUES:
        end = start + 1
    reason = (
        f"member of {holder}, before the cursor's dot"
        if of_type
        else (f"defines {symbol.name}, used near the cursor" if own else f"{file.why}")
    )
    parts_told = (("file", factor), ("named", own), ("member", member), ("alike", alike), ("used", popular))
    return Piece(symbol.span.path, start, end, score, reason, (*parts_told, ("receiver", of_type)), True)


def windows(near: Near, paths: Iterable[tuple[str, float]], library: Library) -> list[Piece]:
    """Stretches of lines alike to those around the cursor, by BM25 over names; best first, none overlapping."""
    asked = near.weights
    held: list[tuple[str, float, int, frozenset[str]]] = []
    counts: Counter[str] = Counter()
    n_windows = 0
    for path, weight in paths:
        by_line, all_names = names_by_line(library.lines(path), library.identity(path))
        if not all_names.intersection(asked):
            n_windows += len(by_line) // WINDOW_STEP
            continue
        for start in range(0, max(1, len(by_line) - WINDOW_STEP), WINDOW_STEP):
            names = NO_NAMES.union(*by_line[start : start + WINDOW_LINES])
            n_windows += 1
            shared = names.intersection(asked)
            counts.update(shared)
            if len(shared) > 1:
                held.append((path, weight, start, names))
    idf = {name: math.log(1 + (n_windows - n + 0.5) / (n + 0.5)) for name, n in counts.items()}
    scored = [
        (
            (0.6 + 0.4 * min(1.0, weight))
            * sum(idf[name] * asked[name] for name in names.intersection(asked))
            / (0.5 + 0.5 * len(names) / 20),
            path,
            start,
        )
        for path, weight, start, names in held
    ]
    scored.sort(key=lambda each: (-each[0], each[1], each[2]))
    best = scored[0][0] if scored else 1.0
    found: list[Piece] = []
    for score, path, start in scored:
        end = min(start + WINDOW_LINES, len(library.lines(path)))
        if any(each.path == path and each.start < end and start < each.end for each in found):
            continue
        found.append(
            Piece(path, start, end, score / best, "alike to the lines at the cursor", (("alike", score),), False)
        )
        if len(found) >= MOST_WINDOWS:
            break
    return found
