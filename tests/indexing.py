"""What tests of the index share: an embedder without a model, a dump of everything stored, small trees."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from haversack_index.chunk import parse_file as real_parse_file
from haversack_index.database import cursor_of, database_path, open_reading
from haversack_index.embed_errors import InputTooLongError, ServiceUnavailableError
from haversack_index.lexical import words
from haversack_index.store import Store
from haversack_index.types import Array
from haversack_index.update import Update, UpdateResult
from haversack_index.walk import WalkRules


class HashEmbedder:
    """Words hashed into a vector: texts that share words are near each other. Counts what it is asked."""

    def __init__(self, dim: int = 32, name: str = "hash", max_words: int = 0) -> None:
        self.id = f"{name}:{dim}"
        self.dim = dim
        self.vector_weight = 0.5
        self.max_words = max_words
        self.n_texts = 0
        self.down = False

    def embed_documents(self, texts: list[str]) -> Array:
        if self.down or os.path.exists(os.environ.get("HASH_EMBEDDER_DOWN", "")):
            raise ServiceUnavailableError("the embedding service refused the connection")
        self.n_texts += len(texts)
        for index, text in enumerate(texts):
            if self.max_words and len(text.split()) > self.max_words:
                raise InputTooLongError("too long", index)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Array:
        return self._vector(text)

    def _vector(self, text: str) -> Array:
        vector = np.zeros(self.dim, np.float32)
        for word in words(text):
            vector[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % self.dim] += 1.0
        return vector / max(float(np.linalg.norm(vector)), 1e-9)


def hash_embedder(kind: str = "hash", dim: int = 32) -> HashEmbedder:
    """A factory as a worker process names it; `kind` says whether parse processes embed ("static") or the worker."""
    return HashEmbedder(dim)


class Hanging(HashEmbedder):
    """A model that never comes back."""

    def embed_documents(self, texts: list[str]) -> Array:
        time.sleep(3_600)
        return super().embed_documents(texts)


def hanging_embedder(kind: str) -> HashEmbedder:
    return Hanging(name=kind)


def printing_embedder() -> HashEmbedder:
    """A plug-in that writes to stdout, from Python and below it."""
    print("loading...")
    os.write(1, b"loading from below...\n")
    return HashEmbedder()


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def module(name: str, n_functions: int = 2) -> str:
    """A small Python module whose words are its own."""
    function = "def {0}_step_{1}(value):\n    '''Carry {0} to place {1}.'''\n    return value + {1}"
    return "\n\n".join(function.format(name, i) for i in range(n_functions))


def index(
    folder: Path, cache: Path, *, rules: WalkRules | None = None, paths: Sequence[str] | None = None, **options: Any
) -> UpdateResult:
    """One pass, as the worker makes it."""
    store = Store(database_path(folder, cache))
    try:
        return Update(store, folder, rules or WalkRules(), **options).run(paths)
    finally:
        store.close()


def dump(folder: Path, cache: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the index of a folder says, free of ids, times and the order of writing."""
    connection, _ = open_reading(database_path(folder, cache))
    cursor = cursor_of(connection)
    chunk = "f.path, c.start, c.end, c.kind, c.heading, c.names, c.signature_end, c.language, c.length, c.terms"
    queries = {
        "files": "SELECT path, content_hash, size, language, n_lines, note, imports FROM files",
        "chunks": f"SELECT {chunk}, c.vector_key FROM chunks c JOIN files f ON f.id=c.file_id",
        "vectors": "SELECT f.path, c.start, v.vector FROM chunks c JOIN files f ON f.id=c.file_id"
        " JOIN vectors v ON v.vector_key=c.vector_key",
        "symbols": "SELECT f.path, s.name, s.kind, s.line, s.container FROM symbols s JOIN files f ON f.id=s.file_id",
        "refs": "SELECT f.path, r.name, r.line, r.within FROM refs r JOIN files f ON f.id=r.file_id",
        "skipped": "SELECT path, reason, rule FROM skipped",
    }
    found = {name: sorted(cursor.execute(sql).fetchall()) for name, sql in queries.items()}
    found["problems"] = integrity(cursor)
    connection.close()
    return found


def integrity(cursor: Any) -> list[tuple[Any, ...]]:
    """What should not be: rows without their file, chunks without words, words or vectors without a chunk."""
    found = [row for row in cursor.execute("PRAGMA integrity_check").fetchall() if row != ("ok",)]
    for table in ("chunks", "symbols", "refs"):
        sql = f"SELECT '{table}', * FROM {table} WHERE file_id NOT IN (SELECT id FROM files)"
        found += cursor.execute(sql).fetchall()
    chunk_ids = {row[0] for row in cursor.execute("SELECT id FROM chunks").fetchall()}
    word_ids = {row[0] for row in cursor.execute("SELECT id FROM words_docsize").fetchall()}
    found += [("words", n) for n in chunk_ids ^ word_ids]
    if cursor.execute("SELECT 1 FROM meta WHERE key='nearest' AND value='whole'").fetchone():
        near = {row[0] for row in cursor.execute("SELECT chunk_id FROM nearest").fetchall()}
        found += [("nearest", n) for n in near - chunk_ids]
    return found


def serve_badly(*arguments: Any) -> None:
    """A parse process with a grammar that never returns on one file and crashes on another."""
    from haversack_index import prepare
    from haversack_index.pool import _serve

    def parse_file(path: str, text: str, language: str | None = None) -> Any:
        if "HANG" in text:
            time.sleep(3_600)
        if "DIE" in text:
            os._exit(11)
        return real_parse_file(path, text, language)

    prepare.__dict__["parse_file"] = parse_file
    _serve(*arguments)


def serve_not_at_all(*arguments: Any) -> None:
    """A parse process that ends before its first file."""
    os._exit(1)
