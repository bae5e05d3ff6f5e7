"""Bring the index of a folder up to date: only what changed is read, only what changed in content is parsed.

After any list of edits, renames and deletes the index equals one built from nothing. A pass that is killed at any
moment is taken up by the next one: what is stored is whole files, and a file is stored again only if its hash differs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from haversack_index import preparation
from haversack_index.database import SEPARATOR, storable
from haversack_index.embed import document_text, is_withheld
from haversack_index.prepare import (
    EmbedFailure,
    Prepared,
    Task,
    embed_texts,
    prepare_files,
    vector_key,
)
from haversack_index.store import FileRows, SkippedRow, Store, StoredFile, StoreReplacedError
from haversack_index.text import content_hash, decode, split_lines
from haversack_index.types import Embedder, SkipReason
from haversack_index.walk import CannotRead, Found, Skipped, WalkRules, check, read_file, walk

# A batch is one transaction: this many files or this long, whichever comes first, so that answers follow the work and
# another process waits for the write lock half a second at most.
BATCH_FILES = 512
BATCH_SECONDS = 0.5
# Files handed to the embedder together when this process prepares them itself.
PREPARE_FILES = 16
# Texts of one batch of late vectors; a few seconds of work for the slowest local model.
LATE_VECTORS = 64
# Files whose change changes which files belong to the index.
RULE_FILES = frozenset({".gitignore", ".haversackignore"})

PrepareAll = Callable[[Sequence[Task]], Iterable[Prepared]]
OnProgress = Callable[[str, int, int], None]
"""Called with a phase ("scanning", "indexing", "embedding"), files done and files in all."""


@dataclass(slots=True)
class UpdateResult:
    """What a pass did. `problems` are sentences for the user; `failure` is why vectors are missing, if they are."""

    generation: int = 0
    n_written: int = 0
    n_deleted: int = 0
    n_read: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[str] = field(default_factory=list[str])
    failure: EmbedFailure | None = None
    stopped: bool = False


@dataclass(slots=True)
class Update:
    """A pass over one folder with an open store; `run` may be called again and again."""

    store: Store
    folder: Path
    rules: WalkRules
    embedder: Embedder | None = None
    prepare_all: PrepareAll | None = None
    on_progress: OnProgress | None = None
    stop: Callable[[], bool] | None = None
    standing: Sequence[str] = ()  # problems that outlive a pass, for the status

    def run(self, paths: Sequence[str] | None = None) -> UpdateResult:
        """One pass: over the whole folder, or over `paths` only. A damaged database is set aside and built again.

        OSError: the cache folder cannot be written. apsw.BusyError: another process held the lock all the time.
        """
        try:
            return self._pass(paths)
        except (apsw.CorruptError, apsw.NotADBError):
            self.store.reopen(damaged=True)
        except StoreReplacedError:
            self.store.reopen(damaged=False)
        return self._pass(None)

    def _pass(self, paths: Sequence[str] | None) -> UpdateResult:
        result = UpdateResult()
        if not self.folder.is_dir():
            # Perhaps not mounted: what is known of it is kept.
            result.problems.append(f"The folder {self.folder} does not exist.")
            self.store.set_meta({"phase": "done", "problems": "\n".join(result.problems)})
            return result
        self.store.check()
        if self.store.meta("complete") != "yes":
            paths = None  # single paths are not the whole while the whole was never seen
        if self.embedder is not None:
            self.store.set_embedder(self.embedder.id, self.embedder.dim)
        self._progress("scanning", 0, 0)
        stored = self.store.files()
        scan = self._scan(stored) if paths is None else self._scan_paths(paths, stored)
        self._index(scan, stored, result)
        if not result.stopped:
            self._finish(scan, result)
        return result

    def _scan(self, stored: dict[str, StoredFile]) -> _Scan:
        if not self.store.meta("phase"):
            self.store.set_meta({"phase": "scanning"})
        scan = _Scan(forget=None)
        unreadable: list[str] = []
        content_skips = {path: row for path, row in self.store.skipped().items() if row.mtime_ns}
        if self.store.meta("preparation") != preparation.current():
            content_skips.clear()  # other rules skipped them
        seen: set[str] = set()
        for item in walk(self.folder, self.rules):
            if isinstance(item, Skipped):
                scan.skip(item)
                if item.reason is SkipReason.UNREADABLE:
                    unreadable.append(item.path)
                continue
            seen.add(item.path)
            known = content_skips.get(item.path)
            if known is not None and (known.size, known.mtime_ns) == (item.size, item.mtime_ns):
                scan.skipped[item.path] = known
                seen.discard(item.path)
                continue
            scan.look_at(item, stored)
        scan.delete = [path for path in stored if path not in seen and not _within(path, unreadable)]
        return scan

    def _scan_paths(self, paths: Sequence[str], stored: dict[str, StoredFile]) -> _Scan:
        scan = _Scan(forget=[])
        for path in dict.fromkeys(paths):
            if storable(path) != path:
                continue  # a name that is not UTF-8 was never indexed
            verdict = check(self.folder, path, self.rules)
            is_folder = isinstance(verdict, Found) and verdict.path.endswith("/")
            if is_folder or path.rsplit("/", 1)[-1] in RULE_FILES:
                return self._scan(stored)
            assert scan.forget is not None
            scan.forget.append(path)
            if isinstance(verdict, Found):
                scan.look_at(verdict, stored, always=True)
                gone = [other for other in stored if other.startswith(path + "/")]
            else:
                # Asked by name alone a file that is not there may be skipped for its name; it is gone all the same.
                if os.path.lexists(self.folder / path) and verdict.reason is not SkipReason.GONE:
                    scan.skip(self._outermost(path, verdict))
                below = path.rstrip("/") + "/"
                gone = [other for other in stored if other == path or other.startswith(below)]
                if verdict.reason is SkipReason.UNREADABLE:
                    gone = []
            scan.delete += gone
        return scan

    def _outermost(self, path: str, verdict: Skipped) -> Skipped:
        """The row a walk would give: that of the outermost folder that is skipped, not of each file in it."""
        parts = path.rstrip("/").split("/")
        for n_parts in range(1, len(parts)):
            folder = check(self.folder, "/".join(parts[:n_parts]), self.rules)
            if isinstance(folder, Skipped):
                return folder
        return verdict

    def _index(self, scan: _Scan, stored: dict[str, StoredFile], result: UpdateResult) -> None:
        total = len(scan.tasks)
        meta = {"phase": "indexing", "done": "0", "total": str(total)}
        if scan.delete or total:
            result.generation = self.store.write(delete=scan.delete, meta=meta)
        result.n_deleted = len(scan.delete)
        self._progress("indexing", 0, total)
        batch = _Batch()
        for done, prepared in enumerate(self._prepare(scan.tasks), 1):
            self._take(prepared, stored, scan, batch, result)
            if batch.is_due() or done == total:
                meta = {"phase": "indexing", "done": str(done), "total": str(total)}
                result.generation = self.store.write(batch.rows, batch.delete, batch.touch, meta)
                batch = _Batch()
                self._progress("indexing", done, total)
            if self.stop is not None and self.stop():
                result.stopped = done < total
                if result.stopped:
                    self.store.write(batch.rows, batch.delete, batch.touch)
                    return

    def _take(
        self, one: Prepared, stored: dict[str, StoredFile], scan: _Scan, batch: _Batch, result: UpdateResult
    ) -> None:
        result.n_read += 1
        if one.problem:
            result.problems.append(one.problem)
        result.failure = one.failure or result.failure
        if one.rows is not None:
            batch.rows.append(one.rows)
            result.n_written += 1
        elif one.unchanged is not None:
            batch.touch.append((one.path, one.unchanged))
        elif one.skip is not None:
            if one.skip is not SkipReason.GONE or scan.forget is None:
                scan.skipped[one.path] = SkippedRow(one.path, one.skip.value, one.detail, one.size, one.mtime_ns)
            if one.path in stored and one.skip is not SkipReason.UNREADABLE:
                batch.delete.append(one.path)
                result.n_deleted += 1

    def _prepare(self, tasks: Sequence[Task]) -> Iterable[Prepared]:
        if self.prepare_all is not None:
            return self.prepare_all(tasks)
        return self._prepare_here(tasks)

    def _prepare_here(self, tasks: Sequence[Task]) -> Iterator[Prepared]:
        for first in range(0, len(tasks), PREPARE_FILES):
            some = tasks[first : first + PREPARE_FILES]
            yield from prepare_files(self.folder, self.rules, some, self.embedder, self.store.known_vectors)

    def _finish(self, scan: _Scan, result: UpdateResult) -> None:
        self.store.set_skipped(scan.skipped.values(), scan.forget)
        for row in self.store.skipped().values():
            result.skipped[row.reason] = result.skipped.get(row.reason, 0) + 1
        problems = [self.store.recovered] if self.store.recovered else []
        problems += [*self.standing, *result.problems]
        self.store.recovered = ""
        if self.embedder is not None and result.failure is not None:
            problems.append(result.failure.message)
        result.problems = list(dict.fromkeys(problems))
        meta = {"phase": "done", "problems": "\n".join(result.problems)}
        if self.embedder is not None:
            paths = self.store.files() if scan.forget is None else [task.path for task in scan.tasks]
            _drop_withheld(self.store, self.embedder, paths)
        if scan.forget is None:
            meta |= {"complete": "yes", "preparation": preparation.current()}
            self.store.prune_vectors()
        self.store.set_meta(meta)
        result.generation = int(self.store.meta("generation") or 0)
        total = len(scan.tasks)
        self._progress("indexing", total, total)

    def _progress(self, phase: str, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(phase, done, total)


def embed_missing(
    store: Store,
    folder: Path,
    rules: WalkRules,
    embedder: Embedder,
    *,
    stop: Callable[[], bool] | None = None,
    on_progress: OnProgress | None = None,
) -> EmbedFailure | None:
    """Give vectors to chunks that have none: after a change of model, or a service that was down. None: all done.

    Files that changed since they were indexed are left to the next pass.
    """
    store.set_embedder(embedder.id, embedder.dim)
    _drop_withheld(store, embedder, store.files())
    after = done = 0
    while stop is None or not stop():
        missing = store.missing_vectors(LATE_VECTORS, after)
        if not missing:
            return None
        after = missing[-1].chunk_id
        texts: dict[bytes, tuple[str, str]] = {}
        lines: dict[str, list[str] | None] = {}
        for item in missing:
            if item.path not in lines:
                is_kept_back = is_withheld(embedder, item.path)
                lines[item.path] = (
                    None if is_kept_back else _lines_as_indexed(folder, item.path, item.content_hash, rules)
                )
            file_lines = lines[item.path]
            heading = tuple(item.heading.split(SEPARATOR)) if item.heading else ()
            text = "" if file_lines is None else "".join(file_lines[item.start : item.end])
            if file_lines is not None and vector_key(item.path, heading, text) == item.vector_key:
                texts[item.vector_key] = (item.path, document_text(item.path, heading, text))
        made, _, failure = embed_texts(embedder, texts)
        if made:
            store.add_vectors(made)
            done += len(made)
            if on_progress is not None:
                on_progress("embedding", done, 0)
        if failure is not None:
            return failure
    return None


def _drop_withheld(store: Store, embedder: Embedder, paths: Iterable[str]) -> None:
    """Delete vectors that a service made of files before they were withheld from it."""
    store.drop_vectors(path for path in paths if is_withheld(embedder, path))


@dataclass(slots=True)
class _Scan:
    """What a pass has to do. `forget` lists paths whose skip rows are replaced; None for all of them."""

    forget: list[str] | None
    tasks: list[Task] = field(default_factory=list[Task])
    delete: list[str] = field(default_factory=list[str])
    skipped: dict[str, SkippedRow] = field(default_factory=dict[str, SkippedRow])

    def skip(self, item: Skipped) -> None:
        self.skipped[item.path] = SkippedRow(item.path, item.reason.value, item.rule)

    def look_at(self, found: Found, stored: dict[str, StoredFile], always: bool = False) -> None:
        known = stored.get(found.path)
        if known is None or known.is_outdated:
            self.tasks.append(Task(found.path, found.size))
        elif always or known.racy or (known.size, known.mtime_ns) != (found.size, found.mtime_ns):
            self.tasks.append(Task(found.path, found.size, known.content_hash))


@dataclass(slots=True)
class _Batch:
    rows: list[FileRows] = field(default_factory=list[FileRows])
    delete: list[str] = field(default_factory=list[str])
    touch: list[tuple[str, StoredFile]] = field(default_factory=list[tuple[str, StoredFile]])
    started: float = field(default_factory=time.monotonic)

    def is_due(self) -> bool:
        return len(self.rows) >= BATCH_FILES or time.monotonic() - self.started > BATCH_SECONDS


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(folder in (path, "") or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _lines_as_indexed(folder: Path, path: str, wanted_hash: str, rules: WalkRules) -> list[str] | None:
    try:
        data = read_file(folder, path, rules.max_file_size)
    except CannotRead:
        return None
    decoded = decode(data) if content_hash(data) == wanted_hash else None
    return None if decoded is None else split_lines(decoded[0])
