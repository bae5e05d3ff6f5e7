"""Whether a text quotes restricted files line by line, for text that does not say what it was made from.

Sound for what is in play: lines of restricted files that some source brought for this request. A line that also
stands in a file that a remote model may read is no secret and does not count, nor do short lines, which all share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Shorter lines are closing brackets, common imports and the like.
SHORTEST = 24
# One line of this length is not written twice by chance; of shorter ones it takes two.
TELLING = 40
# Lines of a piece of code that was moved or copied.
PIECE = 3
_IMPORT = re.compile(r"(?:import|from|use|using|package|require|export [*{]|#\s*include)\b")
# Marks of diffs, quotes, lists and line numbers before a line, and the quotes of code inside a sentence.
_BEFORE = re.compile(r"^\s*(?:[+>|*-]\s*|\d+\s*[:|\t]\s*)*")
_PIECES = re.compile(r"[\n`]+")


@dataclass(frozen=True, slots=True)
class Quotes:
    """Lines that only restricted files have."""

    lines: frozenset[str] = frozenset()

    @classmethod
    def of(cls, restricted: Iterable[Sequence[str]], others: Iterable[Sequence[str]]) -> Quotes:
        found = {
            plain
            for lines in restricted
            for line in lines
            if len(plain := _plain(line)) >= SHORTEST and not _IMPORT.match(plain)
        }
        if found:
            found.difference_update(_plain(line) for lines in others for line in lines if len(line) > SHORTEST)
        return cls(frozenset(found))

    def inside(self, text: str) -> bool:
        """Whether so much is quoted that it cannot be chance."""
        quoted = self._found(text)
        return len(quoted) > 1 or any(len(line) >= TELLING for line in quoted)

    def fill(self, text: str) -> bool:
        """Whether it is whole pieces of restricted files: for code, which shares single lines with other code."""
        return len(self._found(text)) >= PIECE

    def _found(self, text: str) -> set[str]:
        return (
            {plain for piece in _PIECES.split(text) if (plain := _plain(piece)) in self.lines} if self.lines else set()
        )


def _plain(line: str) -> str:
    return " ".join(_BEFORE.sub("", line, 1).split())
