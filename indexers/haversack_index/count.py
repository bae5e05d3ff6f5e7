"""Search without an index: words counted in the files of a folder, within a second.

The answer while the first pass runs, or when the database cannot be read. Files go through the same door as for the
index, so nothing that is ignored is looked into.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from haversack_index import lexical
from haversack_index.rank import ScoredChunk, Statistics, rank
from haversack_index.text import decode, split_lines
from haversack_index.types import ChunkKind, ParsedFile, Query, SearchResult, Span, Tier
from haversack_index.walk import CannotRead, Skipped, WalkRules, content_skip, read_file, walk

# A search may take this long and look at this many files; what it has then is its answer.
COUNT_SECONDS = 1.0
COUNT_FILES = 2_000
# Files that the count looks into; larger ones are mostly data.
COUNT_FILE_BYTES = 400_000
# Lines shown around the densest place of a counted file, as many as a line block has.
COUNT_LINES = 40


class _Counted(NamedTuple):
    path: str
    text: str
    counts: list[int]  # of each word of the question


def count_files(folder: Path, query: Query, reason: str, rules: WalkRules | None = None) -> SearchResult:
    """Words counted in the files of `folder`; `reason` says why there is no better answer."""
    problems = [reason]
    searched = lexical.question_words(query.text, *query.terms, *query.identifiers, *query.paths)
    searched = searched[: lexical.MAX_SCORED_WORDS]
    counted: list[_Counted] = []
    for path, text in _texts(folder, query, rules or WalkRules(), problems) if searched else ():
        folded = text.lower()
        counts = [folded.count(word) for word in searched]
        if any(counts):
            counted.append(_Counted(path, text, counts))
    in_files = [sum(1 for one in counted if one.counts[place]) for place in range(len(searched))]
    rarity = [math.log(1 + (len(counted) + 1) / (n_files + 0.5)) for n_files in in_files]
    counted.sort(key=lambda one: (-_worth(one, rarity), one.path))
    # What a file is, which `rank` looks at, can move it up by a few places, not past four times the limit.
    pool = [_chunk(one, searched, rarity) for one in counted[: 4 * query.max_files]]
    mean_size = sum(len(one.text) for one in counted) / max(1, len(counted))
    statistics = Statistics(dict(zip(searched, rarity, strict=True)), mean_size)
    return SearchResult(rank(pool, query, statistics=statistics), Tier.COUNT, 0, tuple(problems))


def _texts(folder: Path, query: Query, rules: WalkRules, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Path and text of unsaved buffers, then of files, until time or number runs out."""
    unsaved = {file.path: file for file in query.overlay}
    for path, file in unsaved.items():
        yield path, _text_of(file)
    deadline = time.monotonic() + COUNT_SECONDS
    n_files = 0
    for found in walk(folder, rules):
        if isinstance(found, Skipped) or found.size > COUNT_FILE_BYTES or found.path in unsaved:
            continue
        if n_files == COUNT_FILES or time.monotonic() > deadline:
            problems.append(f"Only the first {n_files:,} files were looked at.")
            return
        n_files += 1
        try:
            data = read_file(folder, found.path, COUNT_FILE_BYTES)
        except CannotRead:
            continue
        decoded = decode(data) if content_skip(found.path, data) is None else None
        if decoded is not None:
            yield found.path, decoded[0]


def _text_of(file: ParsedFile) -> str:
    """A buffer's text from its chunks, which leave out blank lines only, so that lines keep their numbers."""
    lines = ["\n"] * file.n_lines
    for chunk in file.chunks:
        lines[chunk.span.start : chunk.span.end] = split_lines(chunk.text)
    return "".join(lines)


def _worth(counted: _Counted, rarity: Sequence[float]) -> float:
    return sum(math.log1p(count) * value for count, value in zip(counted.counts, rarity, strict=True))


def _chunk(counted: _Counted, searched: Sequence[str], rarity: Sequence[float]) -> ScoredChunk:
    """The lines around the densest place of a file stand for all of it."""
    present = [(word, value) for word, value, count in zip(searched, rarity, counted.counts, strict=True) if count]
    lines = split_lines(counted.text)
    weights = [sum(value for word, value in present if word in line) for line in map(str.lower, lines)]
    starts = range(0, max(len(lines), 1), COUNT_LINES // 2)
    start = max(starts, key=lambda first: sum(weights[first : first + COUNT_LINES]))
    end = min(start + COUNT_LINES, len(lines))
    in_path = frozenset(lexical.path_words(counted.path))
    return ScoredChunk(
        span=Span(counted.path, start, end),
        kind=ChunkKind.LINES,
        heading=(),
        signature_end=end,
        names=(),
        language="",
        content_hash="",
        keyword=_worth(counted, rarity),
        cosine=None,
        counts=dict(zip(searched, counted.counts, strict=True)),
        path_match=sum(word in in_path for word in searched) / len(searched),
        stem_match=lexical.stem_match(counted.path, searched),
        file_size=len(counted.text),
    )
