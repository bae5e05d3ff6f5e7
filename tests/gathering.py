"""A small workspace on disk for the tests of gathering, with an index made by parsing its files once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from haversack import uris
from haversack.classify import classify
from haversack.memory import MemoryStore
from haversack.policy.documents import DocumentGate
from haversack.types import Diagnostic, Document, Folder, Plan, Policy, Request, Settings, Snapshot
from haversack.workspace import Workspace
from haversack_index.chunk import parse_file
from haversack_index.documents import Access
from haversack_index.lexical import words
from haversack_index.text import content_hash
from haversack_index.types import (
    FileHit,
    FileRecord,
    Hit,
    IndexState,
    IndexStatus,
    Query,
    Reference,
    SearchResult,
    Symbol,
    Tier,
)

T = TypeVar("T")
POOL = ThreadPoolExecutor(4)


class FakeIndex:
    """Answers from files as they were when it was made; search counts words."""

    def __init__(self, root: Path, files: Mapping[str, str], generation: int = 1) -> None:
        self.parsed = {path: parse_file(path, text) for path, text in sorted(files.items())}
        self.hashes = {path: content_hash((root / path).read_bytes()) for path in self.parsed}
        self.generation = generation
        self.queries: list[Query] = []

    def status(self) -> IndexStatus:
        return IndexStatus("fake", IndexState.READY, self.generation, len(self.parsed), 0, 0, 0, 0, 0)

    def search(self, query: Query) -> SearchResult:
        self.queries.append(query)
        overlaid = {parsed.path: parsed for parsed in query.overlay}
        asked = {word for term in query.terms for word in words(term)}
        found: list[FileHit] = []
        for path, parsed in ({**self.parsed, **overlaid}).items():
            digest = self.hashes.get(path, "")
            hits = [
                Hit(c.span, c.kind, c.heading, c.signature_end, score, (("words", score),), digest, c.language, c.names)
                for c in parsed.chunks
                if (score := len(asked.intersection(words(c.text))) / max(1, len(asked))) > 0
            ]
            hits.sort(key=lambda hit: -hit.score)
            if hits:
                found.append(FileHit(path, hits[0].score, hits[0].parts, tuple(hits[: query.hits_per_file])))
        found.sort(key=lambda file: (-file.score, file.path))
        return SearchResult(tuple(found[: query.max_files]), Tier.KEYWORD, self.generation)

    def definitions(self, names: Sequence[str], limit: int = 50) -> tuple[Symbol, ...]:
        wanted = set(names)
        return tuple(s for parsed in self.parsed.values() for s in parsed.symbols if s.name in wanted)[:limit]

    def definers(self, names: Sequence[str], most: int) -> dict[str, frozenset[str]]:
        found = {
            name: frozenset(path for path, parsed in self.parsed.items() if any(s.name == name for s in parsed.symbols))
            for name in names
        }
        return {name: paths for name, paths in found.items() if 0 < len(paths) <= most}

    def references(self, names: Sequence[str], limit: int = 50) -> tuple[Reference, ...]:
        wanted = set(names)
        return tuple(r for parsed in self.parsed.values() for r in parsed.references if r.name in wanted)[:limit]

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        return self.parsed[path].symbols if path in self.parsed else ()

    def file(self, path: str) -> FileRecord | None:
        if path not in self.parsed:
            return None
        parsed = self.parsed[path]
        return FileRecord(path, self.hashes[path], 100, 0, parsed.language, parsed.n_lines, self.generation)

    def files(self) -> tuple[FileRecord, ...]:
        return tuple(record for path in self.parsed if (record := self.file(path)) is not None)

    def document(self, path: str, content_hash: str, access: Access) -> FileRecord | None:
        return record if (record := self.file(path)) is not None and record.content_hash == content_hash else None

    def sections(self, path: str, content_hash: str, access: Access) -> tuple[Symbol, ...]:
        return self.symbols(path) if self.document(path, content_hash, access) is not None else ()

    def imports(self, path: str) -> tuple[str, ...]:
        return self.parsed[path].imports if path in self.parsed else ()

    def copies(self, hashes: Sequence[str]) -> Sequence[tuple[str, str]]:
        return [(digest, path) for path, digest in self.hashes.items() if digest in hashes]

    def paths_matching(self, text: str, limit: int = 20) -> Sequence[str]:
        return [path for path in self.parsed if text.rsplit("/", 1)[-1].lower() in path.lower()][:limit]


@dataclass
class World:
    """Folders by name with their files; `open` puts a buffer in front of one."""

    tmp: Path
    folders: dict[str, dict[str, str]]
    settings: Settings = field(default_factory=Settings)
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    diagnostics: tuple[Diagnostic, ...] = ()
    memory: MemoryStore | None = None
    cache_dir: Path | None = None
    trusted: bool = True
    now: float = 4e9
    policy: Policy = field(default_factory=Policy)

    def __post_init__(self) -> None:
        for key, files in self.folders.items():
            (self.tmp / key).mkdir(parents=True, exist_ok=True)
            for path, text in files.items():
                self.write(key, path, text)
        self.indexes = {key: FakeIndex(self.tmp / key, files) for key, files in self.folders.items()}

    def write(self, key: str, path: str, text: str) -> Path:
        full = self.tmp / key / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text.encode())
        return full

    def uri(self, key: str, path: str) -> str:
        return uris.from_path(self.tmp / key / path)

    def open(
        self, key: str, path: str, text: str, *, dirty: bool = True, changed: tuple[tuple[int, int], ...] = ()
    ) -> str:
        uri = self.uri(key, path)
        language = parse_file(path, "").language
        self.documents[uri] = Document(uri, key, path, text, language, dirty, changed)
        return uri

    def open_outside(self, uri: str, text: str) -> str:
        uri = uris.canonical(uri)
        self.documents[uri] = Document(uri, None, None, text, "python", True)
        return uri

    def snapshot(self) -> Snapshot:
        folders = tuple(Folder(key, self.uri(key, ""), str((self.tmp / key).resolve())) for key in self.folders)
        return Snapshot(
            folders, self.documents, self.settings, self.now, self.diagnostics, (), self.trusted, self.policy
        )

    def workspace(self, request: Request | None = None) -> Workspace:
        """For whoever makes the request; without one, for a caller who is of no tenant."""
        gate = DocumentGate.of(self.snapshot(), request)
        known = {"memory": self.memory, "cache_dir": self.cache_dir}
        return Workspace(self.snapshot(), self.indexes, POOL, gate=gate, **known)

    def plan(self, request: Request | str, **changes: Any) -> Plan:
        asked = Request(request) if isinstance(request, str) else request
        return replace(classify(asked, self.snapshot(), lambda _: False), **changes)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def lines_of(candidate: Any, detail: str) -> str:
    """The text a form of a candidate serves."""
    form = next(form for form in candidate.forms if form.detail == detail)
    return "".join(line for start, end in form.spans for line in candidate.file.lines[start:end])
