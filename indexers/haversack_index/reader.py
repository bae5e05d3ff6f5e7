"""What everybody else reads the index with: search, symbols, files and status. Safe for several threads."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

from haversack_index.count import count_files
from haversack_index.database import (
    SEPARATOR,
    Bindings,
    Cursor,
    cursor_of,
    database_path,
    file_identity,
    get_meta,
    open_reading,
    storable,
)
from haversack_index.documents import STATEMENTS, Access, admit, values
from haversack_index.lexical import MAX_WORD_CHARS
from haversack_index.search import Shared, search
from haversack_index.types import (
    Embedder,
    FileRecord,
    IndexState,
    IndexStatus,
    Query,
    Reference,
    SearchResult,
    Span,
    Symbol,
    SymbolKind,
)
from haversack_index.walk import WalkRules

_NO_INDEX = "There is no index of this folder yet; words are counted in its files."
_UNREADABLE = "The index cannot be read ({}); it is rebuilt when the indexer next starts."

_SYMBOL_COLUMNS = (
    "s.name, s.kind, f.path, s.start, s.end, s.line, s.signature_end, s.container, s.signature, s.language, s.depth"
)
_FILE_COLUMNS = "path, content_hash, size, mtime_ns, language, n_lines, generation, note"
# Names looked up by one call; a caller with more has pasted text, not asked about names.
_MAX_NAMES = 500


class _Open(NamedTuple):
    connection: apsw.Connection
    identity: tuple[int, int]
    vector_problem: str
    shared: Shared


class IndexReader:
    """Reads the index of one folder. Nothing here writes or waits for a writer: a reader sees the last whole batch.

    Without a database every list is empty, `search` counts words in files, and `status` says so.
    """

    def __init__(
        self, folder: Path, cache_dir: Path, embedder: Embedder | None = None, rules: WalkRules | None = None
    ) -> None:
        self.folder = Path(folder)
        self.embedder = embedder
        self._rules = rules
        self._path = database_path(folder, cache_dir)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[apsw.Connection] = []
        self._shared: tuple[tuple[int, int], Shared] | None = None
        self._counts: tuple[int, tuple[Any, ...]] | None = None
        self._paths: tuple[int, tuple[str, ...]] | None = None

    @property
    def generation(self) -> int:
        """Moves on whenever an answer may have changed; 0 without an index."""
        return int(self._meta("generation") or 0)

    def search(self, query: Query) -> SearchResult:
        try:
            opened = self._open()
            result = search(
                opened.connection,
                query,
                self.embedder if query.by_meaning else None,
                opened.vector_problem,
                opened.shared,
            )
            return result if self._meta("complete") == "yes" else self._unfinished(query, result)
        except apsw.CantOpenError:
            return count_files(self.folder, query, _NO_INDEX, self._rules)
        except apsw.Error as error:
            self._drop()
            return count_files(self.folder, query, _UNREADABLE.format(error), self._rules)

    def _unfinished(self, query: Query, result: SearchResult) -> SearchResult:
        """While the first pass runs: what is indexed so far, or a count of words if that holds nothing."""
        reason = f"The index is being built ({self._meta('done') or 0} of {self._meta('total') or 0} files so far)."
        if not result.files:
            return count_files(self.folder, query, reason, self._rules)
        return replace(result, problems=(*result.problems, reason))

    def definitions(self, names: Sequence[str], limit: int = 50) -> tuple[Symbol, ...]:
        """Symbols of these names: exact case first, then any case; `Outer.name` asks for the one inside `Outer`."""
        found: dict[tuple[Any, ...], Symbol] = {}
        for name in list(dict.fromkeys(names))[:_MAX_NAMES]:
            *outer, last = [part for part in re.split(r"\.|::|#|/", name) if part] or [""]
            # With containers to choose by all are needed, else no more than are given back.
            most = 5_000 if outer else limit
            rows = self._symbols("s.name=?", (last,), most) or self._symbols("s.folded=?", (last.lower(),), most)
            inside = [row for row in rows if not outer or list(row.container[-len(outer) :]) == outer]
            for symbol in inside or rows:
                found[(symbol.span, symbol.name, symbol.line)] = symbol
        return tuple(found.values())[:limit]

    def definers(self, names: Sequence[str], most: int) -> dict[str, frozenset[str]]:
        """The files that define each of these names, in this very case. Names with more than `most` are left out: they
        tell nothing, and there may be thousands."""
        sql = "SELECT DISTINCT f.path FROM symbols s JOIN files f ON f.id=s.file_id WHERE s.name=? LIMIT ?"
        found = {
            name: frozenset(str(row[0]) for row in self._rows(sql, (name, most + 1)))
            for name in list(dict.fromkeys(names))[:_MAX_NAMES]
        }
        return {name: paths for name, paths in found.items() if 0 < len(paths) <= most}

    def references(self, names: Sequence[str], limit: int = 200) -> tuple[Reference, ...]:
        sql = "SELECT r.name, f.path, r.line, r.within FROM refs r JOIN files f ON f.id=r.file_id WHERE r.name=?"
        found: list[Reference] = []
        for name in list(dict.fromkeys(names))[:_MAX_NAMES]:
            rows = self._rows(f"{sql} ORDER BY f.path, r.line LIMIT ?", (name, limit - len(found)))
            found += [Reference(*row) for row in rows]
            if len(found) >= limit:
                break
        return tuple(found)

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        """Symbols of one file in its order."""
        return tuple(sorted(self._symbols("f.path=?", (path,)), key=lambda symbol: (symbol.line, symbol.depth)))

    def imports(self, path: str) -> tuple[str, ...]:
        """Modules and paths the file imports, as written."""
        rows = self._rows("SELECT imports FROM files WHERE path=?", (path,))
        return tuple(rows[0][0].split(SEPARATOR)) if rows and rows[0][0] else ()

    def file(self, path: str) -> FileRecord | None:
        rows = self._rows(f"SELECT {_FILE_COLUMNS} FROM files WHERE path=?", (path,))
        return FileRecord(*rows[0]) if rows else None

    def document(self, path: str, content_hash: str, access: Access) -> FileRecord | None:
        """What the index knows of a document whose text has this hash, if its reader may have it."""
        rows = self._rows(STATEMENTS["document"], values(path, content_hash, access), access)
        return FileRecord(*rows[0]) if rows else None

    def sections(self, path: str, content_hash: str, access: Access) -> tuple[Symbol, ...]:
        """The symbols of such a document in its order."""
        rows = self._rows(STATEMENTS["sections"], values(path, content_hash, access), access)
        return tuple(_symbol_of(row) for row in rows)

    def why_skipped(self, path: str) -> str:
        """Why the last pass left this file out; "" for one it took, never saw, or skipped with a whole folder."""
        rows = self._rows("SELECT reason, rule FROM skipped WHERE path=?", (path,))
        return " by ".join(part for part in rows[0] if part) if rows else ""

    def files(self) -> tuple[FileRecord, ...]:
        """All indexed files by path."""
        return tuple(FileRecord(*row) for row in self._rows(f"SELECT {_FILE_COLUMNS} FROM files ORDER BY path"))

    def copies(self, hashes: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Content hash and path of every file that has one of these hashes."""
        rows = self._rows(
            "SELECT content_hash, path FROM files WHERE content_hash IN (SELECT value FROM json_each(?))",
            (json.dumps(hashes),),
        )
        return tuple((str(digest), str(path)) for digest, path in rows)

    def paths_matching(self, text: str, limit: int = 20) -> tuple[str, ...]:
        """Paths that `text` may mean, best first: whole path, end of a path, file name, stem, then letters in order."""
        wanted = text.replace("\\", "/").strip().removeprefix("./").strip("/")
        if not wanted:
            return ()
        folded = wanted.lower()
        letters = re.compile(".*?".join(map(re.escape, folded[:MAX_WORD_CHARS])))
        scored: list[tuple[tuple[int, int, str], str]] = []
        for path in self._all_paths():
            grade = _grade(path, wanted, folded)
            if grade is None:
                # Searched from the file name if it holds them all, else over the whole path; tighter is better.
                name = path.lower().rsplit("/", 1)[-1]
                found, base = letters.search(name), 8
                if found is None:
                    found, base = letters.search(path.lower()), 1_000
                if found is None:
                    continue
                grade = base + found.end() - found.start()
            scored.append(((grade, len(path), path), path))
        return tuple(path for _, path in sorted(scored)[:limit])

    def status(self) -> IndexStatus:
        """State and counts. Ready means that the last pass ended and a probe query found what it had to find."""
        try:
            opened = self._open()
            return self._status(opened)
        except apsw.CantOpenError:
            return IndexStatus(str(self.folder), IndexState.SCANNING, 0, 0, 0, 0, 0, 0, 0, problems=(_NO_INDEX,))
        except apsw.Error as error:
            self._drop()
            problem = _UNREADABLE.format(error)
            return IndexStatus(str(self.folder), IndexState.DEGRADED, 0, 0, 0, 0, 0, 0, 0, problems=(problem,))

    def close(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._local = threading.local()

    def _status(self, opened: _Open) -> IndexStatus:
        cursor = cursor_of(opened.connection)
        meta = {row[0]: row[1] for row in cursor.execute("SELECT key, value FROM meta")}
        generation = int(meta.get("generation", 0))
        if self._counts is None or self._counts[0] != generation:
            sql = (
                "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM chunks), (SELECT count(*) FROM symbols),"
                " (SELECT count(*) FROM chunks c JOIN vectors v ON v.vector_key=c.vector_key)"
            )
            self._counts = (generation, cursor.execute(sql).fetchone() or (0, 0, 0, 0))
        n_files, n_chunks, n_symbols, n_vectors = self._counts[1]
        sql = "SELECT reason, count(*) FROM skipped GROUP BY reason ORDER BY reason"
        skipped = {row[0]: row[1] for row in cursor.execute(sql)}
        problems = [line for line in meta.get("problems", "").split("\n") if line]
        problems += [opened.vector_problem] if opened.vector_problem and self.embedder is not None else []
        phase = meta.get("phase", "scanning")
        if phase == "done":
            state = IndexState.READY
            if n_files == 0 and skipped:
                problems.append(
                    f"No file was indexed: all {sum(skipped.values()):,} entries were skipped; see the reasons."
                )
            elif n_files and not _probe(cursor):
                problems.append("The index did not answer a probe query; rebuild it.")
            if problems:
                state = IndexState.DEGRADED
        else:
            state = IndexState.SCANNING if phase == "scanning" else IndexState.INDEXING
        return IndexStatus(
            folder=str(self.folder),
            state=state,
            generation=generation,
            n_files=n_files,
            n_chunks=n_chunks,
            n_symbols=n_symbols,
            n_vectors=n_vectors,
            done=int(meta.get("done", 0)),
            total=int(meta.get("total", 0)),
            skipped=skipped,
            embedder=meta.get("embedder", ""),
            problems=tuple(dict.fromkeys(problems)),
        )

    def _open(self) -> _Open:
        """This thread's connection, opened again when the file was replaced under it."""
        identity = file_identity(self._path)
        opened = cast("_Open | None", getattr(self._local, "opened", None))
        if opened is not None and opened.identity == identity:
            return opened
        self._drop()
        if not self._path.is_file():
            raise apsw.CantOpenError("no database")
        connection, problem = open_reading(self._path)
        with self._lock:
            self._connections.append(connection)
            if self._shared is None or self._shared[0] != identity:
                self._shared = (identity, Shared())
                self._counts = self._paths = None
            opened = _Open(connection, identity, problem, self._shared[1])
        self._local.opened = opened
        return opened

    def _drop(self) -> None:
        opened = cast("_Open | None", getattr(self._local, "opened", None))
        if opened is None:
            return
        self._local.opened = None
        with self._lock, suppress(ValueError):
            self._connections.remove(opened.connection)
        opened.connection.close()

    def _rows(self, sql: str, values: Bindings = (), access: Access | None = None) -> list[tuple[Any, ...]]:
        try:
            connection = self._open().connection
            if access is not None:
                admit(connection, access)
            return cursor_of(connection).execute(sql, _storable(values)).fetchall()
        except apsw.CantOpenError:
            return []
        except apsw.Error:
            self._drop()
            return []  # `status` and `search` carry the reason

    def _meta(self, key: str) -> str:
        try:
            return get_meta(cursor_of(self._open().connection), key)
        except apsw.Error:
            return ""

    def _symbols(self, where: str, values: tuple[Any, ...], most: int = 5_000) -> list[Symbol]:
        sql = f"SELECT {_SYMBOL_COLUMNS} FROM symbols s JOIN files f ON f.id=s.file_id WHERE {where}"
        rows = self._rows(f"{sql} ORDER BY s.depth, f.path, s.line LIMIT {int(most)}", values)
        return [_symbol_of(row) for row in rows]

    def _all_paths(self) -> tuple[str, ...]:
        generation = self.generation
        if self._paths is None or self._paths[0] != generation:
            self._paths = (generation, tuple(row[0] for row in self._rows("SELECT path FROM files")))
        return self._paths[1]


def _symbol_of(row: tuple[Any, ...]) -> Symbol:
    """A row of `_SYMBOL_COLUMNS`."""
    name, kind, path, start, end, line, signature_end, container, signature, language, depth = row
    return Symbol(
        name=name,
        kind=SymbolKind(kind),
        span=Span(path, start, end),
        line=line,
        signature_end=signature_end,
        container=tuple(container.split(SEPARATOR)) if container else (),
        signature=signature,
        language=language,
        depth=depth,
    )


def _storable(values: Bindings) -> Bindings:
    if isinstance(values, dict):
        return {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}
    return tuple(storable(value) if isinstance(value, str) else value for value in values)


def _grade(path: str, wanted: str, folded: str) -> int | None:
    """0 to 7, smaller is closer; None when only its letters could match."""
    for step, (candidate, target) in enumerate(((path, wanted), (path.lower(), folded))):
        name = candidate.rsplit("/", 1)[-1]
        if candidate == target:
            return step
        if candidate.endswith("/" + target):
            return 2 + step
        if os.path.splitext(name)[0] == target:
            return 4 + step
    return 6 if folded in path.lower().rsplit("/", 1)[-1] else 7 if folded in path.lower() else None


def _probe(cursor: Cursor) -> bool:
    """Whether a word that is known to be in the index finds its chunk."""
    row = cursor.execute("SELECT id, terms FROM chunks WHERE length>0 ORDER BY id LIMIT 1").fetchone()
    if row is None:
        return True
    chunk_id, terms = row
    word = terms.split()[0].split("=")[0]
    match = f'"{word}"'
    found = cursor.execute("SELECT 1 FROM words WHERE words MATCH ? AND rowid=?", (match, chunk_id)).fetchone()
    return found is not None
