"""The nouns of the index: places, chunks, symbols, hits, and why a file was skipped.

Paths are relative to one workspace folder, with `/` between parts, whatever the platform.
Lines are counted from 0 by the Language Server Protocol's rules (only `\\n`, `\\r\\n` and `\\r` end a line);
a `Span` is half open, so `Span("a.py", 3, 5)` is lines 3 and 4, which a person reads as 4-5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class SkipReason(StrEnum):
    """Why a file under the workspace folder is not in the index. The value is what users read."""

    GIT_IGNORED = "git-ignored"
    HAVERSACK_IGNORED = "haversack-ignored"
    HIDDEN = "hidden"
    VENDORED = "vendored"  # dependency, build and version-control folders, by name
    SECRET_NAME = "secret-name"  # .env, private keys: names that hold secrets by convention
    TOO_LARGE = "too-large"
    BINARY = "binary"
    GENERATED = "generated"
    MINIFIED = "minified"
    LOCK_FILE = "lock-file"
    SYMLINK = "symlink"
    SPECIAL = "special-file"  # FIFO, socket, device
    BAD_NAME = "bad-name"  # a name that is not UTF-8, or too long to open
    UNREADABLE = "unreadable"
    UNDECODABLE = "undecodable"
    GONE = "gone"  # vanished between listing and reading


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Whole lines of one file: `start` inclusive, `end` exclusive, from 0."""

    path: str
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.end < self.start:
            raise ValueError(f"span {self.start}-{self.end} of {self.path!r} does not run forward")

    def overlaps(self, other: Span) -> bool:
        return self.path == other.path and self.start < other.end and other.start < self.end


class ChunkKind(StrEnum):
    """What a chunk is made of."""

    DEFINITION = "definition"  # one whole function, method, class, type ...
    GROUP = "group"  # a run of small neighbouring definitions or statements
    SECTION = "section"  # a heading with its text, a table of a config file
    LINES = "lines"  # line blocks, where no grammar exists or parsing was given up


class SymbolKind(StrEnum):
    CLASS = "class"
    INTERFACE = "interface"
    STRUCT = "struct"
    ENUM = "enum"
    TRAIT = "trait"
    TYPE = "type"
    FUNCTION = "function"
    METHOD = "method"
    CONSTRUCTOR = "constructor"
    PROPERTY = "property"
    FIELD = "field"
    VARIABLE = "variable"
    CONSTANT = "constant"
    MODULE = "module"
    NAMESPACE = "namespace"
    MACRO = "macro"
    HEADING = "heading"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a file that makes sense on its own.

    `heading` is the path of enclosing names, outermost first, without the file: `("Context", "invoke")`.
    `signature_end` is the first line after the declaration's header, so `span.start .. signature_end` is what
    a signature form shows; equal to `span.end` when there is no body to leave out.
    `text` is the file's own text of those lines, line ends included.
    """

    span: Span
    kind: ChunkKind
    heading: tuple[str, ...]
    text: str
    language: str
    signature_end: int
    names: tuple[str, ...] = ()  # what the chunk defines, outermost first


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition. `span` is the whole of it, `line` where its name stands, `signature` its header on one line."""

    name: str
    kind: SymbolKind
    span: Span
    line: int
    signature_end: int
    container: tuple[str, ...]  # enclosing names, outermost first
    signature: str
    language: str
    depth: int = 0  # nesting depth among symbols of this file


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name: a call, an import, a type in a signature. `within` is the symbol it stands in, if any."""

    name: str
    path: str
    line: int
    within: str = ""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """All that one file gives the index."""

    path: str
    language: str
    chunks: tuple[Chunk, ...]
    symbols: tuple[Symbol, ...]
    references: tuple[Reference, ...]
    imports: tuple[str, ...]  # module or path strings as written
    n_lines: int
    note: str = ""  # why a fallback was taken ("too deep", "parse time"), empty when none was


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One indexed file as the store knows it. `content_hash` is hex of 16 bytes; `mtime_ns` and `size` from stat."""

    path: str
    content_hash: str
    size: int
    mtime_ns: int
    language: str
    n_lines: int
    generation: int  # the generation that last wrote it
    note: str = ""  # why it is cut in line blocks although its language has a grammar


class IndexState(StrEnum):
    SCANNING = "scanning"
    INDEXING = "indexing"
    READY = "ready"  # a probe query answered
    DEGRADED = "degraded"  # usable, with something missing that `problems` names


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Counts are files unless named otherwise; `skipped` counts files by `SkipReason` value."""

    folder: str
    state: IndexState
    generation: int
    n_files: int
    n_chunks: int
    n_symbols: int
    n_vectors: int
    done: int  # files handled in the running pass
    total: int  # files to handle in the running pass; 0 while not yet known
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    embedder: str = ""
    problems: tuple[str, ...] = ()


class Tier(StrEnum):
    """The four ways to search, best first; a search falls through to the first that can answer."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    SCAN = "scan"  # exact cosine over stored vectors without the vector extension, plus keywords
    COUNT = "count"  # term counting over files on disk, no index yet


Parts = tuple[tuple[str, float], ...]
"""A score as a sum that can be printed: (name, value) in the order of adding."""


@dataclass(frozen=True, slots=True)
class Query:
    """One search. `terms` are words as a person wrote them; the index cuts them as it cuts code.

    `identifiers` and `paths` are those words of the question that look like names of code and of files.
    `overlay` holds the parsed text of unsaved buffers: it replaces the indexed files of the same paths.
    A weight of None means the embedder's own. Without `by_meaning` no embedder is asked.
    """

    text: str
    terms: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    max_files: int = 60
    hits_per_file: int = 12
    tests_wanted: bool = False
    docs_wanted: bool = False
    vector_weight: float | None = None
    text_weight: float | None = None
    overlay: tuple[ParsedFile, ...] = ()
    by_meaning: bool = True


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by search. `score` is the sum of `parts`, from 0; it compares hits of one search only."""

    span: Span
    kind: ChunkKind
    heading: tuple[str, ...]
    signature_end: int
    score: float
    parts: Parts
    content_hash: str  # of the file when it was indexed
    language: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file found by search, best chunks first. `score` as in `Hit`."""

    path: str
    score: float
    parts: Parts
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    files: tuple[FileHit, ...]  # best first
    tier: Tier
    generation: int
    problems: tuple[str, ...] = ()


class Embedder(Protocol):
    """Text to vectors. Vectors are float32 rows of length `dim`, each of unit length (or all zero for empty text).

    `id` names the model and everything that changes its vectors; vectors of different ids are never mixed.
    `vector_weight` is the share of the vector score when fused with keywords, measured per embedder.
    """

    @property
    def id(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def vector_weight(self) -> float: ...
    def embed_documents(self, texts: list[str]) -> Array: ...
    def embed_query(self, text: str) -> Array: ...
