"""Finds documented code by the first sentence of its comment: keywords alone, vectors alone, and both mixed.

    python bench.py PAIRS.jsonl [--kind static|minilm] [--table TABLE.npz] [--most 1500]

PAIRS.jsonl comes from indexers/training/pairs.py. Every package is searched alone, as a workspace is: the corpus is its
pieces of code with their comments taken out, a query counts as answered by the one piece it came from.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "indexers"))

from haversack_index.embed import StaticEmbedder, document_text, load_embedder
from haversack_index.lexical import question_words, words
from haversack_index.static_table import load_table

SHARES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def bm25(queries: list[str], documents: list[str], k1: float = 1.2, b: float = 0.75) -> np.ndarray:
    """Okapi scores (queries, documents) over the index's own words."""
    counts = [Counter(words(document)) for document in documents]
    lengths = np.array([count.total() for count in counts], np.float32)
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((place, times))
    scores = np.zeros((len(queries), len(documents)), np.float32)
    for row, query in enumerate(queries):
        for word in dict.fromkeys(question_words(query)):
            found = postings.get(word)
            if found:
                places, times = np.array(found).T
                idf = np.log(1 + (len(documents) - len(found) + 0.5) / (len(found) + 0.5))
                scores[row, places] += idf * times * (k1 + 1) / (times + norm[places])
    return scores


def scaled(scores: np.ndarray, floor: bool) -> np.ndarray:
    """Each row to 0..1; keyword scores start at zero, as in the ranking of the index."""
    low = 0 if floor else scores.min(axis=1, keepdims=True)
    return (scores - low) / np.maximum(scores.max(axis=1, keepdims=True) - low, 1e-9)


def measures(scores: np.ndarray) -> tuple[float, float]:
    """MRR@10 and recall@10; a tie counts against us."""
    own = np.diag(scores)[:, None]
    rank = (scores >= own).sum(axis=1)
    return float(np.where(rank <= 10, 1 / np.maximum(rank, 1), 0).mean()), float((rank <= 10).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs")
    parser.add_argument("--kind", default="static")
    parser.add_argument("--table", default="")
    parser.add_argument("--most", type=int, default=1500)
    parser.add_argument("--no-place", action="store_true", help="leave path and heading out of the documents")
    a = parser.parse_args()
    embedder: Any = StaticEmbedder(load_table(Path(a.table))) if a.table else load_embedder(a.kind)
    by_package: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for line in Path(a.pairs).read_text(encoding="utf-8").split("\n")[:-1]:
        row = json.loads(line)
        by_package[row["package"]].append(row)
    print(embedder.id, "vector share:", *SHARES)
    for package, rows in by_package.items():
        if len(rows) > a.most:
            rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[: a.most]]  # noqa: PLW2901
        queries = [row["query"] for row in rows]
        documents = [
            row["code"] if a.no_place else document_text(row["path"], tuple(row["heading"].split()), row["code"])
            for row in rows
        ]
        started = time.process_time()
        d = embedder.embed_documents(documents)
        speed = len(documents) / (time.process_time() - started)
        started = time.process_time()
        q = np.stack([embedder.embed_query(query) for query in queries])
        per_query = (time.process_time() - started) / len(queries) * 1000
        vectors, keywords = scaled(q @ d.T, False), scaled(bm25(queries, documents), True)
        found = [measures(share * vectors + (1 - share) * keywords) for share in SHARES]
        print(
            f"{package:16s} n={len(rows):5d} MRR@10", *(f"{m:.3f}" for m, _ in found),
            "R@10", *(f"{r:.3f}" for _, r in found), f"{speed:.0f}/s query {per_query:.2f} ms", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
