"""The text of open documents, kept as the client has it.

Lines end at `\\n`, `\\r\\n` and `\\r` only, columns count in the encoding agreed with the client, and a position that
does not exist means the nearest one before it (Language Server Protocol 3.17, "Position"). An edit touches the lines it
names and never cuts the whole text again, so a document of a megabyte takes a key press in microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from haversack import uris
from haversack.types import Document, Position, Range
from haversack_index.text import split_lines

# How many recently edited places a document remembers: more than the "edits" source ever shows.
MAX_CHANGED_RANGES = 20
# How many documents the recently-used list names; beyond a few dozen, "recent" says nothing about the task at hand.
MAX_RECENT = 50

_SURROGATE = re.compile("[\ud800-\udfff]")

Locate = Callable[[Path], tuple[str, str] | None]
"""Absolute path to (folder key, path inside the folder); None outside every folder."""


class Encoding(StrEnum):
    """What a column counts: bytes, UTF-16 units or code points."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"


@dataclass(frozen=True, slots=True)
class Edit:
    """One content change. `range` counts columns in the agreed encoding; None replaces the whole text."""

    range: Range | None
    text: str


class Documents:
    """All open documents, by canonical URI."""

    def __init__(self, encoding: Encoding = Encoding.UTF_16) -> None:
        self.encoding = encoding
        self._open: dict[str, OpenDocument] = {}
        self._recent: dict[str, str] = {}  # canonical URI to the client's spelling, oldest first

    def open(self, uri: str, language: str, text: str) -> None:
        """Take a document over from the disk; opening again takes the new text."""
        self._open[uris.canonical(uri)] = OpenDocument(uri, language, text, self.encoding)
        self._touch(uri)

    def change(self, uri: str, edits: Iterable[Edit]) -> bool:
        """Apply `edits` one after the other; False when the document is not open."""
        document = self._open.get(uris.canonical(uri))
        if document is None:
            return False
        for edit in edits:
            document.apply(edit)
        self._touch(uri)
        return True

    def save(self, uri: str, text: str | None = None) -> None:
        document = self._open.get(uris.canonical(uri))
        if document is not None:
            document.save(text)
            self._touch(uri)

    def close(self, uri: str) -> None:
        """Give the document back to the disk: from now on its file is what counts."""
        self._open.pop(uris.canonical(uri), None)

    def get(self, uri: str) -> OpenDocument | None:
        return self._open.get(uris.canonical(uri))

    def open_uris(self) -> tuple[str, ...]:
        """URIs of all open documents, as the client spells them."""
        return tuple(document.uri for document in self._open.values())

    def recent(self) -> tuple[str, ...]:
        """URIs lately opened, changed or saved, newest first, as the client spells them."""
        return tuple(reversed(self._recent.values()))

    def freeze(self, locate: Locate) -> dict[str, Document]:
        """Frozen copies by canonical URI; unchanged documents give the same object as last time."""
        return {key: document.freeze(locate) for key, document in self._open.items()}

    def position(self, uri: str, position: Position) -> Position:
        """A client's position in code points. Without the text of the document the column stays as it is."""
        return self.places(uri)(position)

    def places(self, uri: str) -> Callable[[Position], Position]:
        """What `position` does, for many positions of one document."""
        document = self._open.get(uris.canonical(uri))
        return _as_given if document is None else document.position

    def _touch(self, uri: str) -> None:
        key = uris.canonical(uri)
        self._recent.pop(key, None)
        self._recent[key] = uri
        if len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]


def _as_given(position: Position) -> Position:
    return position


class OpenDocument:
    """One document's text as lines that keep their ends."""

    def __init__(self, uri: str, language: str, text: str, encoding: Encoding) -> None:
        self.uri = uri
        self._path = uris.to_path(uri)  # read once: every question freezes every open document
        self.language = language
        self._encoding = encoding
        self._lines = split_lines(_whole_characters(text))
        self._text: str | None = None
        self._saved = self.text
        self._changed: list[tuple[int, int]] = []
        self._frozen: tuple[int, tuple[str, str] | None, Document] | None = None
        self._edits = 0  # counts everything that makes a frozen copy stale

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def apply(self, edit: Edit) -> None:
        self._edits += 1
        self._text = None
        text = _whole_characters(edit.text)
        if edit.range is None:
            self._lines = split_lines(text)
            self._changed = [(0, len(self._lines))]
            return
        start = self._place(edit.range.start)
        end = self._place(edit.range.end)
        if end < start:
            start, end = end, start
        self._splice(start, end, text)

    def save(self, text: str | None = None) -> None:
        self._edits += 1
        if text is not None and text != self.text:
            self.apply(Edit(None, text))
        self._saved = self.text

    def position(self, position: Position) -> Position:
        """The position in code points, moved to the nearest place before it that exists."""
        line, column = self._place(position)
        return Position(line, column)

    def freeze(self, locate: Locate) -> Document:
        place = None if self._path is None else locate(self._path)
        if self._frozen is not None and self._frozen[:2] == (self._edits, place):
            return self._frozen[2]
        document = Document(
            uri=self.uri,
            folder=place[0] if place else None,
            path=place[1] if place else None,
            text=self.text,
            language=self.language,
            dirty=self.text != self._saved,
            changed_lines=tuple(self._changed),
        )
        self._frozen = (self._edits, place, document)
        return document

    def _place(self, position: Position) -> tuple[int, int]:
        """Line and code point index of `position`. The place after the last line end is (number of lines, 0)."""
        if position.line >= len(self._lines):
            if not self._lines or self._lines[-1][-1] in "\r\n":
                return len(self._lines), 0
            return len(self._lines) - 1, len(self._lines[-1])
        return position.line, code_point_index(self._lines[position.line], position.character, self._encoding)

    def _splice(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        first, last = start[0], end[0] + 1
        head = self._lines[first][: start[1]] if first < len(self._lines) else ""
        tail = self._lines[end[0]][end[1] :] if end[0] < len(self._lines) else ""
        middle = head + text + tail
        # `\r` and `\n` may come to stand side by side across the edges of the edit and are one line end then.
        if first > 0 and middle.startswith("\n") and self._lines[first - 1].endswith("\r"):
            first -= 1
            middle = self._lines[first] + middle
        last = min(last, len(self._lines))
        lines = split_lines(middle)
        self._lines[first:last] = lines
        edited = (start[0], start[0] + max(1, len(split_lines(head + text))))
        self._remember(edited, last, len(lines) - (last - first))

    def _remember(self, edited: tuple[int, int], old_end: int, shift: int) -> None:
        """Put `edited` first; move ranges below the edit by `shift` lines and swallow those that touch it."""
        kept: list[tuple[int, int]] = []
        low, high = edited
        for start, end in self._changed:
            moved = (start + shift, end + shift) if start >= old_end else (start, end)
            if moved[0] <= high and low <= moved[1]:
                low, high = min(low, moved[0]), max(high, moved[1])
            else:
                kept.append(moved)
        end_of_text = max(1, len(self._lines))
        low = min(low, end_of_text - 1)
        inside = [(start, min(end, end_of_text)) for start, end in kept if start < end_of_text]
        self._changed = [(low, max(low + 1, min(high, end_of_text))), *inside][:MAX_CHANGED_RANGES]


def code_point_index(line: str, column: int, encoding: Encoding) -> int:
    """Index into `line` of a column in `encoding` units, never past the line's end or inside a character."""
    end = _content_length(line)
    if encoding is Encoding.UTF_32 or line.isascii():
        return min(column, end)
    content = line[:end]
    if encoding is Encoding.UTF_16:
        units = content.encode("utf-16-le")
        cut = min(column * 2, len(units))
        if 0 < cut < len(units) and 0xDC <= units[cut + 1] <= 0xDF:
            cut -= 2
        return len(units[:cut].decode("utf-16-le"))
    data = content.encode("utf-8")
    cut = min(column, len(data))
    while cut < len(data) and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(data[:cut].decode("utf-8"))


def column_of(line: str, index: int, encoding: Encoding) -> int:
    """The column in `encoding` units of a code point of `line`: what `code_point_index` takes back."""
    before = line[:index]
    if encoding is Encoding.UTF_32 or before.isascii():
        return len(before)
    return len(before.encode("utf-16-le")) // 2 if encoding is Encoding.UTF_16 else len(before.encode("utf-8"))


def _content_length(line: str) -> int:
    if line.endswith("\r\n"):
        return len(line) - 2
    return len(line) - 1 if line and line[-1] in "\r\n" else len(line)


def _whole_characters(text: str) -> str:
    """Lone surrogates replaced by U+FFFD, which has the same length in all three encodings."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
