"""What a gatherer may touch of the world during one request: documents, files, indexes, git, memories.

Built per request from a frozen snapshot. Text always comes from the open buffer, else from the disk as it is now;
the index only says where to look.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from haversack import uris
from haversack.config import walk_rules
from haversack.index_view import Index, VisibleIndex
from haversack.memory import MemoryStore
from haversack.places import Place, find_places, relative_to
from haversack.policy.documents import DocumentGate
from haversack.text_cache import TextCache
from haversack.types import Document, FileText, Folder, Reason, Snapshot
from haversack_index.text import content_hash, split_lines
from haversack_index.types import Hit, ParsedFile, SkipReason, Symbol, Tier
from haversack_index.walk import Checker, Skipped

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Located:
    """A hit of the index found again in today's text; lines from 0, end exclusive."""

    file: FileText
    start: int
    end: int
    signature_end: int
    heading: tuple[str, ...]
    names: tuple[str, ...]
    stale: bool  # the file changed since it was indexed


@dataclass(frozen=True, slots=True)
class Defined:
    """A definition in today's text of its file."""

    file: FileText
    symbol: Symbol


class Workspace:
    """One request's view of the world. Methods that read block: call them through `run`, from several threads."""

    def __init__(
        self,
        snapshot: Snapshot,
        indexes: Mapping[str, Index],
        pool: Executor,
        *,
        memory: MemoryStore | None = None,
        cache_dir: Path | None = None,
        texts: TextCache | None = None,
        gate: DocumentGate | None = None,
        words_only: frozenset[str] = frozenset(),
    ) -> None:
        self.gate = gate if gate is not None else DocumentGate.of(snapshot)
        self.snapshot = _seen_through(self.gate, snapshot)
        self.indexes = indexes
        if self.gate.tenants:
            self.indexes = {key: VisibleIndex(each, partial(self._hides_indexed, key)) for key, each in indexes.items()}
        self.withheld: dict[tuple[str, str], Reason] = {}  # documents asked for that the reader may not have
        self.words_only = words_only  # folders whose embedder may not have this question
        self.memory = memory
        self.cache_dir = cache_dir
        self.searched: dict[str, tuple[int, Tier]] = {}  # generation and tier per folder, written by the search
        self._pool = pool
        self._texts = texts if texts is not None else TextCache()
        self._max_size = snapshot.settings.max_file_size
        self._reasons: dict[tuple[str, str], Reason | None] = {}
        self._folders = {folder.key: folder for folder in snapshot.folders}
        self._open = {
            (document.folder, document.path): document
            for document in self.snapshot.documents.values()
            if document.folder is not None and document.path is not None
        }
        self._loaded: dict[tuple[str, str], FileText | SkipReason] = {}
        self._verdicts: dict[tuple[str, str], Skipped | None] = {}
        self._checkers: dict[str, Checker] = {}

    async def run(self, function: Callable[..., T], *args: object) -> T:
        """Runs blocking `function` on the reading threads. Cancelling stops the wait, not a call that has begun."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    def folders_in_play(self, key: str) -> tuple[Folder, ...]:
        """The folder a request names, or all of them."""
        folder = self._folders.get(key)
        return (folder,) if folder else self.snapshot.folders

    def document(self, uri: str) -> Document | None:
        return self.snapshot.documents.get(uris.canonical(uri))

    def resolve(self, value: str, prefer_folder: str = "") -> tuple[Place, ...]:
        """Places named exactly by `value`, () when there are none. Raises `path_outside_workspace`."""
        if not value.startswith("file:"):
            document = self.document(value) if ":" in value else None
            if document is not None:
                if document.folder is not None and document.path is not None:
                    return (Place(document.folder, document.path),)
                return (Place("", document.uri),)
        places = find_places(value, self.snapshot.folders, prefer_folder, self._is_open)
        return tuple(place for place in places if not self._hides_place(place))

    def withholds(self, folder: str, path: str) -> Reason | None:
        """Why the reader may not have this document, by all its names: links and folders in folders give it several."""
        if not self.gate.active:
            return None
        key = (folder, path)
        if key not in self._reasons:
            reasons = (self.gate.reason(name) for name in self.names(folder, path))
            self._reasons[key] = next((reason for reason in reasons if reason is not None), None)
        reason = self._reasons[key]
        if reason is not None and reason is not Reason.OUTSIDE:
            self.withheld[key] = reason
        return reason

    def hides(self, folder: str, path: str) -> bool:
        """Whether the document is another tenant's, which is as if it were not there."""
        return bool(self.gate.tenants) and any(self.gate.hides(name) for name in self.names(folder, path))

    def read(self, folder: str, path: str) -> FileText | None:
        """The text of a file as it is now: its open buffer, else the disk; None when it cannot be served as text.

        With `folder` "" the path is the URI of an open document outside every folder.
        """
        loaded = self._load(folder, path)
        return loaded if isinstance(loaded, FileText) else None

    def why_not(self, folder: str, path: str) -> SkipReason | None:
        """Why `read` gives nothing for this file; None when it gives text."""
        loaded = self._load(folder, path)
        return loaded if isinstance(loaded, SkipReason) else None

    def verdict(self, folder: str, path: str) -> Skipped | None:
        """Why the walk would leave this file out, by the same rules; None when it would take it."""
        key = (folder, path)
        if key not in self._verdicts:
            found = self._checker(folder).check(path)
            self._verdicts[key] = found if isinstance(found, Skipped) else None
        return self._verdicts[key]

    def _checker(self, folder: str) -> Checker:
        """Reads each folder's rules once for a request: a diff may ask about thousands of paths."""
        checker = self._checkers.get(folder)
        if checker is None:
            rules = walk_rules(self.snapshot.settings)
            checker = self._checkers.setdefault(folder, Checker(Path(self._folders[folder].root), rules))
        return checker

    def parsed(self, folder: str, path: str) -> ParsedFile:
        """Chunks and symbols of the text as it is now; empty when the file cannot be read."""
        file = self.read(folder, path)
        if file is None:
            return ParsedFile(path, "text", (), (), (), (), 0, note="not readable")
        return self._texts.parsed(file)

    def symbols(self, folder: str, path: str) -> tuple[Symbol, ...]:
        """Definitions of a file: from the index while the file is as indexed, else from today's text."""
        file = self.read(folder, path)
        if file is None:
            return ()
        known = self._texts.symbols(file)
        if known is not None:
            return known
        index = self.indexes.get(folder)
        record = index.file(path) if index is not None else None
        is_fresh = record is not None and record.content_hash == file.content_hash
        found = index.symbols(path) if index is not None and is_fresh else self.parsed(folder, path).symbols
        self._texts.keep_symbols(file, found)
        return found

    def definitions(self, folder: str, names: Sequence[str], limit: int = 50) -> tuple[Defined, ...]:
        """Where names are defined, in today's text; unsaved buffers answer for their files."""
        index = self.indexes.get(folder)
        known = index.definitions(names, limit) if index is not None and names else ()
        found = [
            located
            for symbol in known
            if not self._is_dirty(folder, symbol.span.path)
            and (located := self.locate_symbol(folder, symbol)) is not None
        ]
        wanted = set(names)
        for parsed in self.overlay(folder):
            file = self.read(folder, parsed.path)
            if file is not None:
                found += [Defined(file, symbol) for symbol in parsed.symbols if symbol.name in wanted]
        return tuple(found[:limit])

    def locate_symbol(self, folder: str, symbol: Symbol) -> Defined | None:
        """A definition of the index found again in today's text; None when it is gone."""
        file = self.read(folder, symbol.span.path)
        if file is None:
            return None
        same = [
            each
            for each in self.symbols(folder, symbol.span.path)
            if (each.name, each.container, each.kind) == (symbol.name, symbol.container, symbol.kind)
        ]
        if not same:
            return None
        return Defined(file, min(same, key=lambda each: (abs(each.span.start - symbol.span.start), each.span.start)))

    def overlay(self, folder: str) -> tuple[ParsedFile, ...]:
        """The parsed unsaved buffers of a folder that the index would take."""
        return tuple(
            self.parsed(folder, document.path)
            for (key, _), document in sorted(self._open.items(), key=lambda item: item[0])
            if key == folder and document.dirty and document.path and self._may_be_searched(folder, document.path)
        )

    def locate(self, folder: str, hit: Hit) -> Located | None:
        """Where a hit stands in today's text; None when its file or its definition is gone."""
        file = self.read(folder, hit.span.path)
        if file is None:
            return None
        n_lines = len(file.lines)
        if file.content_hash == hit.content_hash and hit.span.end <= n_lines:
            span = hit.span
            return Located(file, span.start, span.end, hit.signature_end, hit.heading, hit.names, False)
        chunks = self.parsed(folder, hit.span.path).chunks
        same = [chunk for chunk in chunks if chunk.heading == hit.heading and chunk.names == hit.names]
        if not same and hit.names:
            same = [chunk for chunk in chunks if set(hit.names) & set(chunk.names)]
        if not same and not hit.names:
            same = [chunk for chunk in chunks if chunk.span.overlaps(hit.span)]
        if not same:
            return None
        chunk = min(same, key=lambda each: (abs(each.span.start - hit.span.start), each.span.start))
        return Located(
            file, chunk.span.start, chunk.span.end, chunk.signature_end, chunk.heading, chunk.names, not file.unsaved
        )

    def seen(self, words: Sequence[str]) -> bool:
        """Whether any of these words is defined or used by name in an index."""
        names = tuple(words)
        return bool(names) and any(
            index.definitions(names, 1) or index.references(names, 1) for index in self.indexes.values()
        )

    async def git(self, folder: str, *args: str, seconds: float = 1.0) -> str:
        """Output of a read-only `git` command in a folder; "" on any failure and when the workspace is not trusted.

        The process gets `seconds` and never outlives the call. Pagers, prompts and optional locks are off.
        """
        if not self.snapshot.trusted:
            return ""  # a repository's own settings can name commands that git would run
        root = self._folders[folder].root
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            process = await asyncio.create_subprocess_exec(
                *("git", "-c", "core.quotepath=off", "-c", "core.fsmonitor=false", "--no-pager", *args),
                cwd=root,
                env={**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return ""
        try:
            output, _ = await asyncio.wait_for(process.communicate(), seconds)
        except TimeoutError:
            return ""
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()
        return output.decode("utf-8", "replace") if process.returncode == 0 else ""

    def _is_dirty(self, folder: str, path: str) -> bool:
        document = self._open.get((folder, path))
        return document is not None and document.dirty

    def _hides_indexed(self, folder: str, path: str) -> bool:
        """The same for a file of the index, which follows no links: thousands are asked about, without the disk."""
        full = os.path.join(self._folders[folder].root, path) if folder in self._folders else path
        return any(self.gate.hides(name) for name in (path, *self._inside(full)))

    def _hides_place(self, place: Place) -> bool:
        # Patterns name what is in a folder; the folder itself goes when all that it could hold does.
        return self.hides(place.folder, f"{place.path}/*" if place.is_folder else place.path)

    def names(self, folder: str, path: str) -> Iterator[str]:
        """The path, and what the same file is called from every workspace folder that it really lies in."""
        yield path
        if folder in self._folders:
            yield from self._inside(os.path.realpath(os.path.join(self._folders[folder].root, path)))

    def _inside(self, full: str) -> Iterator[str]:
        plain = full.replace(os.sep, "/")
        return (name for each in self.snapshot.folders if (name := relative_to(plain, each.root)))

    def _is_open(self, folder: str, path: str) -> bool:
        return (folder, path) in self._open

    def _may_be_searched(self, folder: str, path: str) -> bool:
        verdict = self.verdict(folder, path)
        return verdict is None or verdict.reason is SkipReason.GONE  # a new file that was never saved

    def _load(self, folder: str, path: str) -> FileText | SkipReason:
        key = (folder, path)
        if key not in self._loaded:
            self._loaded[key] = self._load_now(folder, path)
        return self._loaded[key]

    def _load_now(self, folder: str, path: str) -> FileText | SkipReason:
        if self.withholds(folder, path) is not None:
            return SkipReason.GONE
        document = self._open.get((folder, path)) if folder else self.document(path)
        if document is not None:
            if folder and not document.dirty:
                # The bytes on disk have the hash the index knows, which the buffer's text may not (byte order mark).
                saved = self._texts.load(self._folders[folder], path, self._max_size, self.snapshot.now)
                if isinstance(saved, FileText) and "".join(saved.lines) == document.text:
                    return replace(saved, language=document.language or saved.language)
            digest = content_hash(document.text.encode("utf-8", "surrogatepass"))
            lines = tuple(split_lines(document.text))
            return FileText(folder, path, lines, document.language, digest, document.dirty)
        if folder not in self._folders:
            return SkipReason.GONE
        return self._texts.load(self._folders[folder], path, self._max_size, self.snapshot.now)


def _seen_through(gate: DocumentGate, snapshot: Snapshot) -> Snapshot:
    """The snapshot without open documents of other tenants."""
    if not gate.tenants:
        return snapshot
    seen = {uri: each for uri, each in snapshot.documents.items() if not gate.hides(each.path or each.uri)}
    recent = tuple(uri for uri in snapshot.recent if uris.canonical(uri) in seen)
    return replace(snapshot, documents=seen, recent=recent)


def _kill(process: asyncio.subprocess.Process) -> None:
    """Ends git with what it started: a child of it would keep the pipe open, and so the wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
