"""The places that somebody lately edited or looked at. Places are kept, never text: what is read is today's."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock

from haversack.fim.nouns import Place

# As many chunks as the best in the field keep, of about a screen and a half each.
MOST_PLACES = 16
LINES_AROUND = 32


class RecentPlaces:
    """Newest first. A place that overlaps a kept one of its file takes its place, and stays edited once edited."""

    def __init__(self, most: int = MOST_PLACES) -> None:
        self._places: deque[Place] = deque()
        self._most = most
        self._lock = Lock()

    def edited(self, folder: str, path: str, line: int, end: int | None = None) -> None:
        """Lines from `line` to `end` (exclusive; None: that line) were changed."""
        self._add(folder, path, line, end, edited=True)

    def viewed(self, folder: str, path: str, line: int, end: int | None = None) -> None:
        self._add(folder, path, line, end, edited=False)

    def places(self) -> Sequence[Place]:
        with self._lock:
            return tuple(self._places)

    def _add(self, folder: str, path: str, line: int, end: int | None, *, edited: bool) -> None:
        last = line + 1 if end is None else max(end, line + 1)
        lines = (max(0, line - LINES_AROUND), min(last, line + 2 * LINES_AROUND) + LINES_AROUND)
        with self._lock:
            kept: list[Place] = []
            for place in self._places:
                same_file = (place.folder, place.path) == (folder, path)
                if same_file and place.lines[0] < lines[1] and lines[0] < place.lines[1]:
                    edited = edited or place.edited
                else:
                    kept.append(place)
            self._places = deque([Place(folder, path, lines, edited), *kept][: self._most])
