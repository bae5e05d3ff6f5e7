"""The order of search results: one pure function from scored chunks to files, every number of it named.

A chunk's score is its keyword and vector scores, each brought to 0..1 over the pool, summed by weight. A file's score
is its best chunk's, with bounded help from its other chunks and from its path, less what kind of file it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from haversack_index.types import ChunkKind, FileHit, Hit, Parts, Query, Span

# Share of the vectors in the fused score when neither the query nor the embedder names one.
DEFAULT_VECTOR_WEIGHT = 0.7
# The most that all further chunks of a file add together: enough to part files whose best chunks are close.
FURTHER_LIMIT = 0.15
# A file whose path holds all words of the question is lifted this much; a share of the words lifts by that share.
PATH_LIFT = 0.15
# A chunk that defines a name the question writes out.
NAME_LIFT = 0.25
# A file whose path the question writes out.
NAMED_PATH_LIFT = 0.5
# Files that talk about code rather than being it, unless they are asked for.
TEST_PENALTY = -0.15
DOCS_PENALTY = -0.05
EXAMPLE_PENALTY = -0.10
VENDORED_PENALTY = -0.20

_TEST = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|testdata|fixtures|e2e)/|(^|/)(test_|conftest)[^/]*$|[._-](test|tests|spec)\.[^/.]+$"
    r"|[a-z0-9](Test|Tests|Spec)\.[^/.]+$"
)
_DOCS = re.compile(r"(^|/)docs?/|\.(md|mdx|rst|adoc|txt)$|(^|/)(changelog|changes|license|news)[^/]*$", re.IGNORECASE)
_EXAMPLE = re.compile(r"(^|/)(examples?|samples?|demos?|tutorials?|benchmarks?)/", re.IGNORECASE)
_VENDORED = re.compile(r"(^|/)(_?vendor(ed)?|third[_-]?party|extern(al)?|deps)/", re.IGNORECASE)
_README = re.compile(r"(^|/)readme[^/]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """One chunk of the pool. `keyword` is exact BM25 (0: no word in it); `cosine` is None where there is no vector.

    `path_match` is the share of the question's words that stand in the path, 0..1.
    """

    span: Span
    kind: ChunkKind
    heading: tuple[str, ...]
    signature_end: int
    names: tuple[str, ...]
    language: str
    content_hash: str
    keyword: float
    cosine: float | None
    path_match: float = 0.0


def rank(
    pool: Sequence[ScoredChunk], query: Query, vector_weight: float = DEFAULT_VECTOR_WEIGHT
) -> tuple[FileHit, ...]:
    """Files best first, chunks best first within; ties go by path and line. `vector_weight` is the embedder's own."""
    vector_share, text_share = _shares(pool, query, vector_weight)
    keywords = _scaled([chunk.keyword for chunk in pool], floor=0.0)
    cosines = _scaled([chunk.cosine for chunk in pool])
    wanted_names = {name.rsplit(".", 1)[-1].rsplit("::", 1)[-1] for name in query.identifiers}
    by_path: dict[str, list[Hit]] = {}
    lifts: dict[str, float] = {}
    for chunk, keyword, cosine in zip(pool, keywords, cosines, strict=True):
        parts: list[tuple[str, float]] = []
        _add(parts, "keyword", text_share * keyword)
        _add(parts, "vector", vector_share * cosine)
        _add(parts, "name", NAME_LIFT if wanted_names.intersection(chunk.names) else 0.0)
        hit = _hit(chunk, tuple(parts))
        by_path.setdefault(chunk.span.path, []).append(hit)
        lifts[chunk.span.path] = chunk.path_match
    files = [_file(path, hits, lifts[path], query) for path, hits in by_path.items()]
    files.sort(key=lambda file: (-file.score, file.path))
    return tuple(files[: query.max_files])


def path_parts(path: str, query: Query) -> Parts:
    """What kind of file this is, as negative parts, unless that kind is wanted."""
    parts: list[tuple[str, float]] = []
    if _TEST.search(path) and not query.tests_wanted:
        _add(parts, "test", TEST_PENALTY)
    if _DOCS.search(path) and not _README.search(path) and not query.docs_wanted:
        _add(parts, "docs", DOCS_PENALTY)
    if _EXAMPLE.search(path) and not query.docs_wanted:
        _add(parts, "example", EXAMPLE_PENALTY)
    if _VENDORED.search(path):
        _add(parts, "vendored", VENDORED_PENALTY)
    return tuple(parts)


def _file(path: str, hits: list[Hit], path_match: float, query: Query) -> FileHit:
    hits.sort(key=lambda hit: (-hit.score, hit.span))
    parts = list(hits[0].parts)
    further = sum(max(hit.score, 0.0) for hit in hits[1:])
    _add(parts, "further", FURTHER_LIMIT * further / (1.0 + further))
    _add(parts, "path", PATH_LIFT * path_match)
    _add(parts, "named_path", NAMED_PATH_LIFT if _is_named(path, query.paths) else 0.0)
    parts += path_parts(path, query)
    return FileHit(path, sum(value for _, value in parts), tuple(parts), tuple(hits[: query.hits_per_file]))


def _hit(chunk: ScoredChunk, parts: Parts) -> Hit:
    return Hit(
        span=chunk.span,
        kind=chunk.kind,
        heading=chunk.heading,
        signature_end=chunk.signature_end,
        score=sum(value for _, value in parts),
        parts=parts,
        content_hash=chunk.content_hash,
        language=chunk.language,
        names=chunk.names,
    )


def _shares(pool: Sequence[ScoredChunk], query: Query, vector_weight: float) -> tuple[float, float]:
    """Vector and text weights, brought to a sum of 1; everything to the one side that has scores at all."""
    if all(chunk.cosine is None for chunk in pool):
        return (0.0, 1.0)
    if all(chunk.keyword <= 0 for chunk in pool):
        return (1.0, 0.0)
    vector = vector_weight if query.vector_weight is None else query.vector_weight
    text = 1.0 - vector if query.text_weight is None else query.text_weight
    vector, text = max(vector, 0.0), max(text, 0.0)
    total = vector + text
    return (vector / total, text / total) if total > 0 else (0.5, 0.5)


def _scaled(values: Sequence[float | None], floor: float | None = None) -> list[float]:
    """To 0..1 over the pool; a missing value is 0, values that are all alike are 1."""
    known = [value for value in values if value is not None]
    low = min(known, default=0.0) if floor is None else floor
    width = max(known, default=0.0) - low
    if width <= 0:
        return [0.0 if value is None or value <= 0 else 1.0 for value in values]
    return [0.0 if value is None else (value - low) / width for value in values]


def _is_named(path: str, named: Iterable[str]) -> bool:
    return any(path == name or path.endswith("/" + name.lstrip("./")) for name in named if name.strip("./"))


def _add(parts: list[tuple[str, float]], name: str, value: float) -> None:
    if value:
        parts.append((name, value))
