"""Keys and passwords in the text around a cursor, hidden from remote models.

The text is searched as a whole, also across the cursor: half a key would not be known for one.
"""

from __future__ import annotations

from haversack.fim.nouns import Cursor
from haversack.fim.window import Window
from haversack.redact import spots_by_line
from haversack_index.text import split_lines

# Short, so that a text never gets dearer.
MARK = "***"


def without_secrets_around(cursor: Cursor, around: Window) -> tuple[str, str, int]:
    """Prefix and suffix without secrets, and how many were hidden. The window's lines count whole: what was cut off a
    long line belongs to a secret as well."""
    lines = cursor.file.lines[around.first : max(around.last, cursor.line + 1)]
    spots = spots_by_line(lines, fragment=True)
    if not spots:
        return around.prefix, around.suffix, 0
    # Offsets in the joined lines; the window begins and ends inside them.
    text = "".join(lines)
    at = sum(map(len, lines[: cursor.line - around.first])) + cursor.column
    starts: list[int] = []
    total = 0
    for line in lines:
        starts.append(total)
        total += len(line)
    found = sorted((starts[row] + a, starts[row] + b) for row, each in spots.items() for a, b, _ in each)
    begin, end = at - len(around.prefix), at + len(around.suffix)
    before, after = _hidden(text, begin, at, found), _hidden(text, at, end, found)
    return before, after, len(found)


def without_secrets_in(text: str) -> str:
    """Whole lines without their secrets."""
    lines = split_lines(text)
    spots = spots_by_line(lines, fragment=True)
    for row, each in spots.items():
        for start, end, _ in sorted(each, reverse=True):
            lines[row] = f"{lines[row][:start]}{MARK}{lines[row][end:]}"
    return "".join(lines)


def _hidden(text: str, begin: int, end: int, found: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = begin
    for start, stop in found:
        low, high = max(start, at), min(stop, end)
        if low < high:
            parts += [text[at:low], MARK]
            at = high
    return "".join((*parts, text[at:end]))
