"""Files as last read, kept between requests for as long as the disk says the same."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from haversack.types import FileText, Folder
from haversack_index.chunk import parse_file
from haversack_index.languages import language_of
from haversack_index.text import content_hash, decode, is_binary, split_lines
from haversack_index.types import ParsedFile, SkipReason, Symbol
from haversack_index.walk import CannotRead, read_file


class TextCache:
    """Texts and parse results of files lately read, kept between requests; each is checked against `stat` on use."""

    # 512 files of a few tens of kB: some 20 MB at most in usual projects, and more than one answer ever reads.
    CAPACITY = 512
    # A file changed less than two seconds before it was read may change again within its time stamp's grain.
    SETTLED_SECONDS = 2.0

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, str], tuple[tuple[int, ...], FileText]] = OrderedDict()
        self._parsed: OrderedDict[tuple[str, str, str], ParsedFile] = OrderedDict()
        self._symbols: OrderedDict[tuple[str, str, str], tuple[Symbol, ...]] = OrderedDict()
        self._lock = Lock()

    def load(self, folder: Folder, path: str, max_size: int, now: float) -> FileText | SkipReason:
        key = (folder.root, path)
        try:
            status = os.stat(os.path.join(folder.root, path))
        except (OSError, ValueError):
            status = None  # the safe reading below says what is wrong
        # The time of change is there for tools that put the time of writing back, as archivers and builds do.
        stamp = (
            (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if status is not None
            else ()
        )
        with self._lock:
            known = self._files.get(key)
            if known is not None and known[0] == stamp and known[1].folder == folder.key:
                self._files.move_to_end(key)
                return known[1]
        try:
            file = _text_of(folder.key, path, read_file(Path(folder.root), path, max_size))
        except CannotRead as error:
            return error.reason
        if isinstance(file, FileText) and status is not None and now - status.st_mtime > self.SETTLED_SECONDS:
            with self._lock:
                self._files[key] = (stamp, file)
                while len(self._files) > self.CAPACITY:
                    self._files.popitem(last=False)
        return file

    def symbols(self, file: FileText) -> tuple[Symbol, ...] | None:
        """Symbols kept for exactly this text; None when there are none."""
        return self._symbols.get(_identity(file))

    def keep_symbols(self, file: FileText, symbols: tuple[Symbol, ...]) -> None:
        with self._lock:
            self._symbols[_identity(file)] = symbols
            while len(self._symbols) > self.CAPACITY:
                self._symbols.popitem(last=False)

    def parsed(self, file: FileText) -> ParsedFile:
        key = _identity(file)
        known = self._parsed.get(key)
        if known is None:
            known = parse_file(file.path, "".join(file.lines), file.language or None)
            with self._lock:
                self._parsed[key] = known
                while len(self._parsed) > self.CAPACITY:
                    self._parsed.popitem(last=False)
        return known


def _identity(file: FileText) -> tuple[str, str, str]:
    # The language belongs to it: an editor may open a file as another language than its name says.
    return (f"{file.folder}/{file.path}", file.content_hash, file.language)


def _text_of(folder: str, path: str, data: bytes) -> FileText | SkipReason:
    if is_binary(data):
        return SkipReason.BINARY
    decoded = decode(data)
    if decoded is None:
        return SkipReason.UNDECODABLE
    lines = tuple(split_lines(decoded[0]))
    language = language_of(path, lines[0] if lines else "")
    return FileText(folder, path, lines, language, content_hash(data))
