"""The default embedder: a table of word-piece vectors, summed. Needs numpy and nothing else.

A text's vector is the sum over its distinct words of (1 + ln tf) times the word's vector, brought to unit length;
a word's vector is the sum of its pieces' rows. Rows already carry their weight (inverse document frequency and what
training made of it), see indexers/training/README.md for how the table came to be.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from io import BytesIO
from itertools import chain
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from haversack_index.embed_errors import TableError
from haversack_index.types import Array
from haversack_index.wordpiece import TOKEN, Vocabulary, shipped_pieces, words_of

# Changes whenever text preparation or pooling changes vectors without the table changing.
PREPARATION = "p1"

# Words read of a text. Its head says what it is about: on four sets of documented code 64 to 400 words find alike
# (MRR@10 within 0.03, no order), and fewer cost less.
HEAD_WORDS = 128

# Characters looked at before counting words: an average word with its separators takes 6 to 8 characters of code, and
# the bound keeps a minified line of megabytes from being cut into tokens that are then thrown away.
HEAD_CHARACTERS = HEAD_WORDS * 16

# Distinct words kept as float32 rows: 32,768 rows of 256 are 32 MB, about the vocabulary of a 100k-chunk repository.
MAX_WORDS = 32_768

# Texts pooled together: their rows, up to 128 each of 1 KB, stay in the processor's cache.
BATCH_TEXTS = 16

# What a word counts for by how often it stands in a text's head.
_WEIGHTS = (1 + np.log(np.arange(1, HEAD_WORDS + 1))).astype(np.float32)

# Distinct tokens as written (`getName`, `GetName` ...) kept with their words; some 100 bytes each.
MAX_TOKENS = 200_000


class StaticTable:
    """Rows of int8 with one scale each: `rows[i] * scales[i]` is the vector of piece i of the shipped vocabulary.

    `rows`: int8 (n, dim); `scales`: float32 (n,). `digest` changes with any byte of the file.
    """

    def __init__(self, rows: NDArray[np.int8], scales: Array, name: str, digest: str) -> None:
        self.rows = rows
        self.scales = scales
        self.name = name
        self.digest = digest
        self.vocabulary = Vocabulary(shipped_pieces())
        if rows.dtype != np.int8 or rows.ndim != 2 or scales.shape != (len(rows),):
            raise TableError(
                f"token table: rows {rows.dtype}{rows.shape} and scales {scales.shape} do not fit together"
            )
        if len(rows) != self.vocabulary.size:
            raise TableError(f"token table has {len(rows)} rows, its vocabulary has {self.vocabulary.size} pieces")
        if not np.isfinite(scales).all():
            raise TableError("token table has scales that are not numbers")

    @property
    def dim(self) -> int:
        return int(self.rows.shape[1])

    def sums(self, words: Sequence[Sequence[int]]) -> Array:
        """Vectors of words given as the numbers of their pieces, of which each has some: float32 (len(words), dim)."""
        pieces = np.fromiter(chain.from_iterable(words), np.intp)
        ends = np.cumsum(np.fromiter(map(len, words), np.intp, len(words)))
        rows = self.rows[pieces].astype(np.float32)
        rows *= self.scales[pieces, None]
        return np.asarray(np.add.reduceat(rows, np.concatenate([[0], ends[:-1]]), axis=0), np.float32)


def load_table(path: Path | None = None) -> StaticTable:
    """The shipped table, or the one at `path`. Raises TableError that names the file when it can't be used."""
    source = path or files("haversack_index") / "data" / "static_table.npz"
    try:
        data = source.read_bytes()
        with np.load(BytesIO(data), allow_pickle=False) as arrays:
            rows, scales = arrays["rows"], arrays["scales"].astype(np.float32)
            name = bytes(arrays["name"]).decode()
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(f"token table {source} can't be read ({error}); reinstall the package") from error
    return StaticTable(rows, scales, name, hashlib.blake2b(data, digest_size=6).hexdigest())


def save_table(path: Path, vectors: Array, name: str) -> None:
    """Writes float vectors (n, dim) as int8 rows with scales; the largest value of a row becomes 127 steps."""
    scales: Array = (np.abs(vectors).max(axis=1) / 127).astype(np.float32)
    rows: NDArray[np.int8] = np.rint(vectors / scales.clip(1e-12)[:, None]).astype(np.int8)
    with path.open("wb") as file:
        np.savez(file, rows=rows, scales=scales, name=np.frombuffer(name.encode(), np.uint8))


class StaticEmbedder:
    """Embedder over a StaticTable. Safe to call from several threads; one call at a time does the work."""

    # For a question that describes one function, 0.7 finds it best (benchmarks/embedding/README.md); for one that
    # describes a change (which files did the commit with this message touch?) anything from 0.4 to 0.7 is as good.
    vector_weight = 0.6

    def __init__(self, table: StaticTable | None = None) -> None:
        self._table = table or load_table()
        self._lock = Lock()
        self._words = _Words(self._table)
        self.id = f"static:{self._table.name}:{self._table.digest}:{PREPARATION}"
        self.dim = self._table.dim

    def embed_documents(self, texts: list[str]) -> Array:
        """float32 (len(texts), dim), unit rows; a text without any word gives a row of zeros."""
        out = np.zeros((len(texts), self.dim), np.float32)
        with self._lock:
            for first in range(0, len(texts), BATCH_TEXTS):
                self._words.trim()
                self._pool(texts[first : first + BATCH_TEXTS], out[first : first + BATCH_TEXTS])
        return out

    def embed_query(self, text: str) -> Array:
        """float32 (dim,)."""
        return self.embed_documents([text])[0]

    def _pool(self, texts: Sequence[str], out: Array) -> None:
        # In the order of the text, not of the cache: sums of floats then do not depend on what was read before.
        counts = [Counter(self._words.numbers(TOKEN.findall(text[:HEAD_CHARACTERS]))[:HEAD_WORDS]) for text in texts]
        vectors = self._words.vectors()[np.fromiter(chain.from_iterable(counts), np.intp)]
        times = np.fromiter(chain.from_iterable(count.values() for count in counts), np.intp)
        weights = _WEIGHTS[times - 1]
        at = 0
        for row, count in enumerate(counts):
            end = at + len(count)
            np.matmul(weights[at:end], vectors[at:end], out=out[row])
            at = end
        lengths = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.where(lengths > 0, lengths, 1.0)[:, None]


class _Words(dict[str, tuple[int, ...]]):
    """Cache from tokens as written to numbers of words, with one float32 row per word seen.

    A missing token is cut when it is first looked up (`__missing__`), so that known ones cost no Python call. Rows of
    new words are summed when they are asked for, many at once.
    """

    def __init__(self, table: StaticTable) -> None:
        super().__init__()
        self._table = table
        self._numbers: dict[str, int] = {}
        self._new: list[list[int]] = []  # pieces of the last words, which have no row yet
        self._rows: Array = np.empty((1024, table.dim), np.float32)

    def vectors(self) -> Array:
        """A row for each word seen, by number."""
        if self._new:
            n_words = len(self._numbers)
            while n_words > len(self._rows):
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._rows[n_words - len(self._new) : n_words] = self._table.sums(self._new)
            self._new.clear()
        return self._rows

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        return list(chain.from_iterable(map(self.__getitem__, tokens)))

    def __missing__(self, token: str) -> tuple[int, ...]:
        found = tuple(number for word in words_of(token) if (number := self._number(word)) is not None)
        self[token] = found
        return found

    def _number(self, word: str) -> int | None:
        if (known := self._numbers.get(word)) is not None:
            return known
        pieces = self._table.vocabulary.cut(word)
        if not pieces:
            return None
        self._new.append(pieces)
        number = self._numbers[word] = len(self._numbers)
        return number

    def trim(self) -> None:
        """Starts over when full: simpler than evicting, and refilling costs milliseconds. Called between texts only."""
        if len(self._numbers) > MAX_WORDS or len(self) > MAX_TOKENS:
            self.clear()
            self._numbers.clear()
            self._new.clear()
            self._rows = np.empty((1024, self._table.dim), np.float32)
