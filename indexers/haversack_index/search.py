"""One search: draw a pool by words and by vectors, score all of it exactly on both, and rank it.

Four tiers, best first. Hybrid: words, and vectors through the vector table. Keyword: words only, because there is no
embedder, it failed, or its vectors are not there yet. Scan: hybrid without the vector extension, comparing vectors one
by one. Count: no usable index, so words are counted in files on disk (`count.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypedDict

import apsw

from haversack_index import lexical, overlay, vectors
from haversack_index.database import SEPARATOR, Cursor, cursor_of, get_meta, storable
from haversack_index.embed import document_text, is_withheld
from haversack_index.rank import DEFAULT_VECTOR_WEIGHT, ScoredChunk, Statistics, rank
from haversack_index.types import Array, Chunk, ChunkKind, Embedder, Query, SearchResult, Span, Tier

# Neighbours by meaning that join the pool, so that a chunk that shares no word with the question still takes part.
NEIGHBOURS = 100
# Names of code and files written in a question; more than a few is pasted text.
MAX_NAMES = 16
# Chunks that one written name or path may bring into the pool by itself.
CHUNKS_PER_NAME = 20
# Chunks of unsaved buffers that are embedded for one search; a large buffer must not stall the query.
MAX_OVERLAY_VECTORS = 64


# Chunks kept in memory between searches: all of a workspace of 3,000 files, at about 1 kB each.
KEPT_CHUNKS = 8_192


class _Stored(NamedTuple):
    """A chunk of the index. What it says of an id never changes: a changed file gets chunks of new ids."""

    id: int
    span: Span
    kind: ChunkKind
    heading: tuple[str, ...]
    names: tuple[str, ...]
    signature_end: int
    language: str
    content_hash: str
    file_size: int
    document: lexical.Document


@dataclass(slots=True)
class Shared:
    """What searches of one database share between threads: numbers that hold for one generation."""

    vectors: vectors.VectorCopy = field(default_factory=vectors.VectorCopy)
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = -1
    n_chunks: int = 0
    mean_length: float = 1.0
    mean_file_size: float = 1.0
    frequencies: dict[str, int] = field(default_factory=dict[str, int])
    chunks: dict[int, _Stored] = field(default_factory=dict[int, "_Stored"])
    overlay_vectors: dict[tuple[str, str], Array] = field(default_factory=dict[tuple[str, str], Array])


def search(
    connection: apsw.Connection, query: Query, embedder: Embedder | None, vector_problem: str, shared: Shared
) -> SearchResult:
    """Search the index of `connection`, all of it in one snapshot. apsw.Error when the database cannot be read."""
    cursor = cursor_of(connection)
    question = _question_vector(embedder, query) if embedder is not None else _Question(None, "")
    cursor.execute("BEGIN")
    try:
        return _search(cursor, query, embedder, question=question, vector_problem=vector_problem, shared=shared)
    finally:
        cursor.execute("COMMIT")


class _Question(NamedTuple):
    vector: Array | None
    problem: str


def _search(
    cursor: Cursor,
    query: Query,
    embedder: Embedder | None,
    *,
    question: _Question,
    vector_problem: str,
    shared: Shared,
) -> SearchResult:
    generation = int(get_meta(cursor, "generation") or 0)
    problems = [question.problem] if question.problem else []
    searched = lexical.question_words(query.text, *query.terms, *query.identifiers, *query.paths)
    corpus = _corpus(cursor, searched, generation, shared)
    replaced = {file.path for file in query.overlay}
    ids = dict.fromkeys(lexical.draw_pool(cursor, searched, corpus))
    ids |= dict.fromkeys(_named_chunks(cursor, query))
    tier, vector = Tier.KEYWORD, question.vector
    if embedder is not None and vector is not None:
        if get_meta(cursor, "embedder") != embedder.id:
            problems.append(f"Vectors of {embedder.id} are not made yet; searching by words only.")
            vector = None
        else:
            tier, found = _neighbours(
                cursor, vector, generation, embedder.id, vector_problem=vector_problem, shared=shared
            )
            ids |= dict.fromkeys(found)
            if tier is Tier.SCAN:
                problems.append(vector_problem)
            elif tier is Tier.KEYWORD:
                if corpus.n_chunks:  # an empty folder has none to wait for
                    problems.append(f"No vectors of {embedder.id} yet; searching by words only.")
                vector = None
    rows = [row for row in _stored(cursor, ids, shared) if row.span.path not in replaced]
    cosines: dict[int, float] = {}
    if embedder is not None and vector is not None:
        numbers = [row.id for row in rows]
        copied = shared.vectors.cosines(vector, numbers, generation, embedder.id)
        cosines = vectors.cosines(cursor, vector, numbers) if copied is None else copied
    unsaved = overlay.overlay_chunks(query.overlay)
    documents = [row.document for row in rows] + [item.document for item in unsaved]
    scored_words = lexical.scored_words(searched, corpus)
    found_words = lexical.occurrences(scored_words, documents)
    keywords = lexical.score(scored_words, documents, found_words, corpus)
    match = _Match(frozenset(scored_words), corpus, {})
    pool = [
        _scored(row, float(keyword), cosines.get(row.id), match.parts(row.span.path, occurrence))
        for row, keyword, occurrence in zip(rows, keywords[: len(rows)], found_words[: len(rows)], strict=True)
    ]
    unsaved_keywords = keywords[len(rows) :]
    unsaved_cosines = _overlay_cosines(unsaved, unsaved_keywords, embedder, vector, shared=shared, problems=problems)
    for index, item in enumerate(unsaved):
        keyword, cosine = float(unsaved_keywords[index]), unsaved_cosines.get(index)
        if keyword > 0 or cosine is not None:
            parts = match.parts(item.chunk.span.path, found_words[len(rows) + index])
            pool.append(_scored_unsaved(item, keyword, cosine, parts))
    weight = embedder.vector_weight if embedder is not None else DEFAULT_VECTOR_WEIGHT
    statistics = Statistics({word: corpus.rarity(word) for word in searched}, shared.mean_file_size)
    return SearchResult(rank(pool, query, weight, statistics), tier, generation, tuple(problems))


class _MatchParts(TypedDict):
    counts: dict[str, int]
    name_match: float
    path_match: float
    stem_match: float


class _Match(NamedTuple):
    """What the question's words are worth, for the parts of a score that are not BM25. `stems` is by path."""

    asked: frozenset[str]
    corpus: lexical.Corpus
    stems: dict[str, float]

    def parts(self, path: str, found: lexical.Occurrence) -> _MatchParts:
        if path not in self.stems:
            self.stems[path] = lexical.stem_match(path, self.asked)
        return {
            "counts": found.body,
            "name_match": lexical.name_match(found, self.corpus),
            "path_match": lexical.path_match(found, self.corpus),
            "stem_match": self.stems[path],
        }


def _question_vector(embedder: Embedder, query: Query) -> _Question:
    if not query.text.strip():
        return _Question(None, "")
    try:
        return _Question(vectors.unit(embedder.embed_query(query.text), embedder.dim), "")
    except Exception as error:  # noqa: BLE001 - an embedder is any code or service; without it words still answer
        return _Question(None, f"The question could not be embedded ({error}); searching by words only.")


def _neighbours(
    cursor: Cursor, vector: Array, generation: int, embedder_id: str, *, vector_problem: str, shared: Shared
) -> tuple[Tier, list[int]]:
    if cursor.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is None:
        return Tier.KEYWORD, []
    whole = get_meta(cursor, "nearest") == "whole"
    if not vector_problem and whole and shared.n_chunks <= vectors.TABLE_LIMIT:
        return Tier.HYBRID, [chunk_id for chunk_id, _ in vectors.nearest(cursor, vector, NEIGHBOURS)]
    found = shared.vectors.nearest(cursor, vector, NEIGHBOURS, generation, embedder_id)
    return (Tier.SCAN if vector_problem else Tier.HYBRID), [chunk_id for chunk_id, _ in found]


def _corpus(cursor: Cursor, searched: Sequence[str], generation: int, shared: Shared) -> lexical.Corpus:
    with shared.lock:
        if shared.generation != generation:
            row = cursor.execute("SELECT count(*), coalesce(avg(length), 1.0) FROM chunks").fetchone()
            shared.n_chunks, shared.mean_length = row or (0, 1.0)
            row = cursor.execute("SELECT coalesce(avg(size), 1.0) FROM files").fetchone()
            (shared.mean_file_size,) = row or (1.0,)
            shared.frequencies = {}
            shared.generation = generation
        unknown = [word for word in searched if word not in shared.frequencies]
        shared.frequencies.update(lexical.frequencies(cursor, unknown))
        known = {word: shared.frequencies[word] for word in searched}
        return lexical.Corpus(shared.n_chunks, shared.mean_length, known)


def _named_chunks(cursor: Cursor, query: Query) -> Iterable[int]:
    """Chunks that define a name written in the question, and the first chunks of a file whose path is written."""
    by_symbol = (
        "SELECT c.id FROM symbols s JOIN chunks c ON c.file_id=s.file_id AND c.start<=s.line AND s.line<c.end"
        " WHERE s.name=? LIMIT ?"
    )
    for name in query.identifiers[:MAX_NAMES]:
        last = storable(name.rsplit(".", 1)[-1].rsplit("::", 1)[-1])
        yield from (row[0] for row in cursor.execute(by_symbol, (last, CHUNKS_PER_NAME)).fetchall())
    by_path = (
        "SELECT c.id FROM files f JOIN chunks c ON c.file_id=f.id"
        " WHERE f.path=? OR substr(f.path, ?)=? ORDER BY c.id LIMIT ?"
    )
    for path in query.paths[:MAX_NAMES]:
        tail = "/" + storable(path.lstrip("./"))
        if len(tail) > 1:
            values = (tail[1:], -len(tail), tail, CHUNKS_PER_NAME)
            yield from (row[0] for row in cursor.execute(by_path, values).fetchall())


def _stored(cursor: Cursor, ids: Iterable[int], shared: Shared) -> list[_Stored]:
    """The chunks of these ids by rising id, read from the tables where they are not in memory."""
    wanted = sorted(ids)
    found = {number: chunk for number in wanted if (chunk := shared.chunks.get(number)) is not None}
    fresh = _read(cursor, [number for number in wanted if number not in found])
    if fresh:
        with shared.lock:
            shared.chunks.update(fresh)
            for number in list(islice(shared.chunks, max(0, len(shared.chunks) - KEPT_CHUNKS))):
                del shared.chunks[number]
        found |= fresh
    return [found[number] for number in wanted if number in found]


def _read(cursor: Cursor, ids: Sequence[int]) -> dict[int, _Stored]:
    if not ids:
        return {}
    numbers = ",".join(map(str, ids))  # integers of our own tables
    sql = (
        "SELECT c.id, f.path, f.content_hash, c.start, c.end, c.kind, c.heading, c.names, c.signature_end, c.language,"
        f" c.length, c.terms, f.size FROM chunks c JOIN files f ON f.id=c.file_id WHERE c.id IN ({numbers})"
    )
    found: dict[int, _Stored] = {}
    for (
        number,
        path,
        digest,
        start,
        end,
        kind,
        heading,
        names,
        signature_end,
        language,
        length,
        terms,
        size,
    ) in cursor.execute(sql):
        found[number] = _Stored(
            number,
            Span(path, start, end),
            ChunkKind(kind),
            _split(heading),
            _split(names),
            signature_end,
            language,
            digest,
            size,
            lexical.Document(path, heading, names, terms, length),
        )
    return found


def _scored(row: _Stored, keyword: float, cosine: float | None, parts: _MatchParts) -> ScoredChunk:
    return ScoredChunk(
        row.span,
        row.kind,
        row.heading,
        row.signature_end,
        row.names,
        row.language,
        row.content_hash,
        keyword,
        cosine,
        file_size=row.file_size,
        **parts,
    )


def _scored_unsaved(
    item: overlay.OverlayChunk, keyword: float, cosine: float | None, parts: _MatchParts
) -> ScoredChunk:
    chunk = item.chunk
    return ScoredChunk(
        chunk.span,
        chunk.kind,
        chunk.heading,
        chunk.signature_end,
        chunk.names,
        chunk.language,
        overlay.UNSAVED,
        keyword,
        cosine,
        file_size=item.file_size,
        **parts,
    )


def _overlay_cosines(
    unsaved: Sequence[overlay.OverlayChunk],
    keywords: Array,
    embedder: Embedder | None,
    vector: Array | None,
    *,
    shared: Shared,
    problems: list[str],
) -> dict[int, float]:
    if embedder is None or vector is None or not unsaved:
        return {}
    allowed = [index for index, item in enumerate(unsaved) if not is_withheld(embedder, item.chunk.span.path)]
    chosen = sorted(allowed, key=lambda index: (-float(keywords[index]), index))[:MAX_OVERLAY_VECTORS]
    keys = {index: (embedder.id, _embedded(unsaved[index].chunk)) for index in chosen}
    fresh = list(dict.fromkeys(key for key in keys.values() if key not in shared.overlay_vectors))
    try:
        if fresh:
            made = embedder.embed_documents([text for _, text in fresh])
            vectors.quantise(made, embedder.dim, len(fresh))
            with shared.lock:
                if len(shared.overlay_vectors) > 8 * MAX_OVERLAY_VECTORS:
                    shared.overlay_vectors.clear()
            shared.overlay_vectors.update(zip(fresh, made, strict=True))
        known = {index: shared.overlay_vectors.get(key) for index, key in keys.items()}
    except Exception as error:  # noqa: BLE001 - as for the question: words still answer
        problems.append(f"Unsaved text could not be embedded ({error}).")
        return {}
    return {index: float(row @ vector) for index, row in known.items() if row is not None}


def _embedded(chunk: Chunk) -> str:
    return document_text(chunk.span.path, chunk.heading, chunk.text)


def _split(joined: str) -> tuple[str, ...]:
    return tuple(joined.split(SEPARATOR)) if joined else ()
