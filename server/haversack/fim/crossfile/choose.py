"""Which pieces fill the room: signatures and windows in turns, no line twice, the best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from haversack.fim.crossfile.library import Library
from haversack.fim.crossfile.pieces import Near, Piece, signatures, windows
from haversack.fim.crossfile.receiver import bases_of, receiver_of, types_of
from haversack.fim.crossfile.related import Related, related
from haversack.fim.crossfile.texts import NAME
from haversack.fim.nouns import Cursor, Place

# Lines that the search goes by, before and after the cursor; a line's weight halves every so many lines.
LINES_BEFORE = 30
LINES_AFTER = 10
HALVING = 8
# Part of the room for signatures; the rest is for windows alike.
SIGNATURES_SHARE = 0.6
MOST_DEFINERS = 4
# What is left of a window beside headers already in is worth its place from so many lines on.
SHORTEST_STRETCH = 2
# Around each file in a prompt: the tokens that part it from the next.
FRAME = 8


def near_cursor(lines: Sequence[str], line: int, column: int) -> Near:
    weights: dict[str, float] = {}
    for number in range(max(0, line - LINES_BEFORE), min(len(lines), line + LINES_AFTER + 1)):
        distance = line - number if number <= line else 2 * (number - line)
        weight = 0.5 ** (distance / HALVING)
        for name in NAME.findall(lines[number]):
            weights[name] = max(weights.get(name, 0.0), weight)
    before = lines[line][:column] if line < len(lines) else ""
    receiver = receiver_of(before)
    types = types_of(receiver, lines, line) if receiver else ()
    return Near(weights, types, frozenset(NAME.findall("".join(lines))))


def with_bases(near: Near, library: Library) -> Near:
    """The receiver's types with the classes these are made from."""
    if not near.types:
        return near
    bases = [base for symbol in library.definitions(near.types) for base in bases_of(symbol.signature)]
    return Near(near.weights, tuple(dict.fromkeys((*near.types, *bases))), near.present)


def files_of(cursor: Cursor, near: Near, places: Sequence[Place], library: Library) -> list[Related]:
    """Related files, and those that define the names in sight."""
    found = {each.path: each for each in related(cursor, frozenset(near.weights), places, library)}
    names = sorted(near.weights, key=lambda name: (-near.weights[name], name))[:40]
    for name, paths in library.definers(tuple(dict.fromkeys((*near.types, *names))), MOST_DEFINERS).items():
        for other in sorted(paths):
            weight = (0.9 if name in near.types else 0.7 * near.weights.get(name, 0.0)) / len(paths)
            if other != cursor.file.path and (other not in found or found[other].weight < weight):
                found[other] = Related(other, weight, f"defines {name}")
    return sorted(found.values(), key=lambda each: (-each.weight, each.path))


def pieces_for(
    cursor: Cursor,
    places: Sequence[Place],
    library: Library,
    most_tokens: int,
    count: Callable[[str], int],
    *,
    definitions: bool = True,
    similar: bool = True,
) -> list[Piece]:
    """The pieces that fill `most_tokens`, best first; a line is in one of them at most."""
    near = with_bases(near_cursor(cursor.file.lines, cursor.line, cursor.column), library)
    files = files_of(cursor, near, places, library)
    headers = signatures(near, files, library) if definitions else []
    stretches = windows(near, [(each.path, each.weight) for each in files], library) if similar else []
    taken: set[tuple[str, int]] = set()
    shown: set[str] = set()
    chosen: list[Piece] = []

    def take(offered: Sequence[Piece], room: int) -> int:
        for offer in offered:
            piece = _untaken(offer, taken)
            if piece is None:
                continue
            text = library.lines(piece.path)[piece.start : piece.end]
            cost = sum(map(count, text)) + (0 if piece.path in shown else count(piece.path) + FRAME)
            if cost > room:
                if room < 12:
                    break
                continue
            room -= cost
            shown.add(piece.path)
            taken.update((piece.path, number) for number in range(piece.start, piece.end))
            chosen.append(piece)
        return room

    for_headers = int(most_tokens * SIGNATURES_SHARE)
    left = take(headers, for_headers)
    left = take(stretches, most_tokens - for_headers + left)
    take(headers, left)
    return chosen


def _untaken(piece: Piece, taken: set[tuple[str, int]]) -> Piece | None:
    """The longest stretch of a piece that is not taken yet; of a header all or nothing."""
    free = [number for number in range(piece.start, piece.end) if (piece.path, number) not in taken]
    if len(free) == piece.end - piece.start:
        return piece
    best: tuple[int, int] = (0, 0)
    start = previous = -2
    for number in free:
        start = number if number != previous + 1 else start
        previous = number
        if number + 1 - start > best[1] - best[0]:
            best = (start, number + 1)
    if piece.is_signature or best[1] - best[0] < SHORTEST_STRETCH:
        return None
    return replace(piece, start=best[0], end=best[1])
