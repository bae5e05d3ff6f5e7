"""Which memories speak of a question: by the words they share with it, and by what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from rank_bm25 import BM25Plus  # pyright: ignore[reportMissingTypeStubs]

from haversack.memory.entries import Memory
from haversack_index.embed import EmbeddingError, load_embedder
from haversack_index.lexical import question_words, words
from haversack_index.types import Array, Embedder

# Cosines of the built-in embedder: unrelated notes stay below 0.2, "background task fails" finds "jobs are retried in
# the queue" at 0.34. Nearness counts in full from `VERY_NEAR` on.
NEAR, VERY_NEAR = 0.25, 0.5
WORDS_SHARE = 0.5


def rank(query: str, memories: Sequence[Memory]) -> tuple[tuple[Memory, float], ...]:
    """Memories that share a word with `query` or are near it in meaning, best first, the best with 1; ties by id."""
    by_words = _shared_words(query, memories)
    by_meaning = _nearness(query, memories)
    scores = [
        WORDS_SHARE * shared + (1 - WORDS_SHARE) * min(1.0, max(0.0, near) / VERY_NEAR)
        if shared > 0 or near >= NEAR
        else 0.0
        for shared, near in zip(by_words, by_meaning, strict=True)
    ]
    best = max(scores, default=0.0)
    found = [
        (memory, round(score / best, 6)) for memory, score in zip(memories, scores, strict=True) if best and score > 0
    ]
    return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].id)))


def _shared_words(query: str, memories: Sequence[Memory]) -> list[float]:
    """BM25 of each memory, the best with 1; 0 for no word in common."""
    asked = list(question_words(query))
    if not asked or not memories:
        return [0.0] * len(memories)
    model: Any = BM25Plus([words(_text(memory)) or [""] for memory in memories])
    # BM25+ gives every text a fixed sum per query word, in it or not; taken off, 0 means "no word in common".
    fixed = sum(model.idf.get(word, 0.0) * model.delta for word in asked)
    scores = [float(score) - fixed for score in model.get_scores(asked)]
    best = max(scores)
    return [score / best if score > 1e-9 else 0.0 for score in scores]


def _nearness(query: str, memories: Sequence[Memory]) -> list[float]:
    """Cosine of each memory with the question; 0 without the embedder's table."""
    embedder = _embedder()
    if embedder is None or not query.strip() or not memories:
        return [0.0] * len(memories)
    asked = embedder.embed_query(query)
    return [float(np.dot(asked, _vector(_text(memory)))) for memory in memories]


def _text(memory: Memory) -> str:
    return f"{memory.title} {' '.join(memory.keywords)} {memory.content}"


@cache
def _embedder() -> Embedder | None:
    """The built-in one, whatever indexes use: notes are compared on this machine alone."""
    try:
        return load_embedder("static")
    except EmbeddingError:
        return None


@lru_cache(maxsize=4_096)  # a kilobyte each; notes change rarely and are compared with every question
def _vector(text: str) -> Array:
    embedder = _embedder()
    assert embedder is not None
    return embedder.embed_documents([text])[0]
