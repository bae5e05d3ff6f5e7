"""Words of code and of questions, and the keyword side of search: draw a pool by rare words, then score it exactly.

Documents and questions are cut by the same rules: an identifier gives itself and its camelCase, snake_case and digit
parts, lower-cased and lightly stemmed. Stop words are left out of questions only, so phrases of code stay whole.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from rank_bm25 import BM25Plus  # pyright: ignore[reportMissingTypeStubs]

from haversack_index.database import SEPARATOR, Cursor
from haversack_index.types import Array

# Rarest words are taken until their chunks sum to this many: measured at 100k chunks, p95 21 ms against 102 ms for
# all words, with 0.90 of the top 20 and 98 % of the first places unchanged.
POSTING_BUDGET = 5_000
# Chunks drawn for the exact score: 200 kept 0.90 of the top 20 at 100k chunks, and 300 find no changed file sooner.
POOL_SIZE = 200
# A question beyond this is pasted text; its first words name its subject, and the rest would only be common ones.
MAX_QUESTION_CHARS = 20_000
# Distinct words of one question that are looked up; a look-up costs about 20 microseconds, so this bounds them to 5 ms.
MAX_QUESTION_WORDS = 256
# Words that take part in the exact score; rarer ones decide, and each costs a pass over the pool.
MAX_SCORED_WORDS = 48
# Longer "identifiers" are digests and encoded data; nobody asks for them whole.
MAX_WORD_CHARS = 64
# Distinct identifiers kept with their words; some 200 bytes each.
MAX_CUTS = 65_536
# BM25's usual constants: how soon repetition stops paying, and how much a long chunk is held against it.
K1, B = 1.2, 0.75
# A word in a chunk's own names counts as often as this many uses of it; one in the path somewhat less.
NAME_WEIGHT = 3.0
PATH_WEIGHT = 1.5

# Chunks whose words are kept unpacked: all of a workspace of 3,000 files, at some 2 kB each.
KEPT_TERMS = 8_192

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_VOWEL = re.compile(r"[aeiouy]")
# Words that look like inflections and are not.
_WHOLE_TEXT = """
    access address anything bring during embed everything feed need nothing process seed something speed string
    thing"""
_WHOLE = frozenset(_WHOLE_TEXT.split())
# Function words of English questions, and the words that ask without naming anything.
_STOP_TEXT = """
    a about after all also am an and any are as at be because been before being both but by can cannot could did
    do does doing done each either else every explain find for from get gets given go goes got had happen happens
    has have having he her here him his how however i if in into is it its itself just let like made make makes
    making many may me might more most much must my no nor not now of off on once one only onto or other our out
    over own per please rather s same shall she should show so some such t tell than that the their them then there
    these they this those through to too under until up upon us use used uses using very via want was we were what
    when where whether which while who whom whose why will with within without work works would you your"""
STOP_WORDS = frozenset(_STOP_TEXT.split())


def words(text: str) -> list[str]:
    """Words of a text in its order, repeats kept."""
    found: list[str] = []
    for match in _WORD.findall(text):
        found += cut(match)
    return found


def counted(text: str) -> Counter[str]:
    """How often each word stands in a text; each distinct identifier is cut once."""
    if len(_CUTS) > MAX_CUTS:
        _CUTS.clear()
    return Counter(chain.from_iterable(map(_CUTS.__getitem__, _WORD.findall(text))))


class _Cuts(dict[str, tuple[str, ...]]):
    """Words of identifiers seen; a known one costs no Python call. Several threads may use it."""

    def __missing__(self, identifier: str) -> tuple[str, ...]:
        found = self[identifier] = cut(identifier)
        return found


_CUTS = _Cuts()


@lru_cache(maxsize=MAX_CUTS)  # code repeats its identifiers: 13 MB/s with it against 8 without
def cut(identifier: str) -> tuple[str, ...]:
    """The words of one identifier: itself and, when there are several, its parts."""
    if len(identifier) > MAX_WORD_CHARS:
        return ()
    if not identifier.isascii() and _CJK.search(identifier):
        return tuple(pair.lower() for pair in _pairs(identifier))
    parts = [stem(part.lower()) for part in _PART.findall(identifier)]
    if len(parts) == 1:
        return tuple(parts)
    return (identifier.lower(), *parts)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Take plural, -ing, -ed and a last -e off, so that `parses`, `parsing`, `parsed` and `parse` meet."""
    if len(word) < 4 or word in _WHOLE or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word in _WHOLE:
        return word
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and _VOWEL.search(base) and not word.endswith("eed"):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word[:-1] if word.endswith("e") and len(word) >= 4 else word


@lru_cache(maxsize=16_384)
def path_words(path: str) -> tuple[str, ...]:
    """Words of a path, each once."""
    return tuple(dict.fromkeys(words(path)))


def name_words(heading: str, names: str) -> list[str]:
    """Words of a stored heading path and of the stored names of a chunk."""
    return words(heading.replace(SEPARATOR, " ") + " " + names.replace(SEPARATOR, " "))


def question_words(*texts: str) -> tuple[str, ...]:
    """Distinct words to search for, in order, without stop words unless nothing else is left."""
    found: dict[str, None] = {}
    stopped: dict[str, None] = {}
    for text in texts:
        for match in _WORD.findall(text[:MAX_QUESTION_CHARS]):
            kept = stopped if match.lower() in STOP_WORDS else found
            for word in cut(match):
                kept[word] = None
            if len(found) >= MAX_QUESTION_WORDS:
                return tuple(found)[:MAX_QUESTION_WORDS]
    return tuple(found or stopped)


def pack_terms(counts: Mapping[str, int]) -> str:
    """The stored form of a chunk's words, in which a word is found by a plain text search."""
    return " " + " ".join(f"{word}={count}" for word, count in sorted(counts.items())) + " "


@lru_cache(maxsize=KEPT_TERMS)
def unpack_terms(terms: str) -> Mapping[str, int]:
    """The words of a packed word list and how often each stands in it."""
    pairs = (item.rpartition("=") for item in terms.split())
    return {sys.intern(word): int(count) for word, _, count in pairs}  # chunks share most of their words


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a word is worth: chunks in all, their mean length in words, and in how many chunks a word stands."""

    n_chunks: int
    mean_length: float
    frequencies: Mapping[str, int]

    def rarity(self, word: str) -> float:
        frequency = self.frequencies.get(word, 0)
        return math.log(1 + (self.n_chunks - min(frequency, self.n_chunks) + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class Document:
    """One chunk as the exact scorer sees it."""

    path: str
    heading: str
    names: str
    terms: str  # packed
    length: int


def frequencies(cursor: Cursor, searched: Iterable[str]) -> dict[str, int]:
    """Chunks that hold each word, as the word table counts them."""
    found: dict[str, int] = {}
    for word in searched:
        row = cursor.execute("SELECT doc FROM vocabulary WHERE term=?", (word,)).fetchone()
        found[word] = 0 if row is None else row[0]
    return found


def draw_pool(cursor: Cursor, searched: Sequence[str], corpus: Corpus, limit: int = POOL_SIZE) -> list[int]:
    """Ids of chunks worth an exact score, best first: those that hold the rarest of the words."""
    chosen: list[str] = []
    postings = 0
    for word in sorted((w for w in searched if corpus.frequencies.get(w)), key=lambda w: (corpus.frequencies[w], w)):
        postings += corpus.frequencies[word]
        if chosen and postings > POSTING_BUDGET:
            break
        chosen.append(word)
    if not chosen:
        return []
    # Each word is quoted by itself: operators and quotes of the question mean nothing here. Words hold no quotes.
    match = " OR ".join(f'"{word}"' for word in chosen)
    rows = cursor.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, limit))
    return [row[0] for row in rows]


def scored_words(searched: Sequence[str], corpus: Corpus) -> list[str]:
    """The words that take part in exact scores, rarest first."""
    return sorted(searched, key=lambda word: (-corpus.rarity(word), word))[:MAX_SCORED_WORDS]


class Occurrence(NamedTuple):
    """Where the question's words stand in one document."""

    body: dict[str, int]  # how often each of them stands in its text
    names: tuple[str, ...]  # those in its heading and names
    n_names: int  # distinct words of its heading and names
    path: tuple[str, ...]  # those in its path


def occurrences(scored: Sequence[str], documents: Iterable[Document]) -> list[Occurrence]:
    """One Occurrence for each document, of the words to be scored."""
    by_path: dict[str, tuple[str, ...]] = {}
    found: list[Occurrence] = []
    for document in documents:
        counts, path = unpack_terms(document.terms), document.path
        if path not in by_path:
            inside = frozenset(path_words(path))
            by_path[path] = tuple(word for word in scored if word in inside)
        names = _name_words(document.heading, document.names)
        body = {word: counts[word] for word in scored if word in counts}
        found.append(Occurrence(body, tuple(w for w in scored if w in names), len(names), by_path[path]))
    return found


def score(scored: Sequence[str], documents: Sequence[Document], found: Sequence[Occurrence], corpus: Corpus) -> Array:
    """Exact BM25 of each document: shape (len(documents),), at least 0, 0 when no word is in it.

    rank-bm25 does the sum. It builds its statistics from the documents it is given, which here are a pool drawn for
    this very question, so every word would look common; the corpus's own are put in their place. That also makes it
    cheap: only words of the question are handed over, not whole documents.
    """
    if not documents or not scored:
        return np.zeros(len(documents), np.float32)
    counts = [_weighted(each) for each in found]
    scorer = cast("Any", BM25Plus([[""]] * len(documents), k1=K1, b=B))
    scorer.doc_freqs = counts
    scorer.doc_len = [document.length for document in documents]
    scorer.avgdl = max(corpus.mean_length, 1.0)
    # A word that no document holds adds nothing, and each costs a pass over all of them.
    present = frozenset[str]().union(*counts)
    held = [word for word in scored if word in present]
    scorer.idf = {word: corpus.rarity(word) for word in held}
    # The library adds this bonus to documents without the word too: a constant, which would hide "no word at all".
    scorer.delta = 0.0
    return np.asarray(scorer.get_scores(held), np.float32)


def name_match(found: Occurrence, corpus: Corpus) -> float:
    """How well the names a chunk defines answer to the question: rarities of shared words, less for foreign ones."""
    n_shared = len(found.names)
    if not n_shared:
        return 0.0
    # Half a foreign word counts against one shared word: `get_user_by_id` still answers to "user id".
    return sum(map(corpus.rarity, found.names)) * n_shared / (n_shared + 0.5 * (found.n_names - n_shared))


def path_match(found: Occurrence, corpus: Corpus) -> float:
    """What the words of the question in this path are worth, 0..1; two words that hardly occur elsewhere make 1."""
    return min(1.0, sum(map(corpus.rarity, found.path)) / (2 * math.log(2 + corpus.n_chunks)))


def stem_match(path: str, asked: Container[str]) -> float:
    """Share of the words of the file's own name, less its extension, that the question holds."""
    inside = path_words(path.rpartition("/")[2].partition(".")[0])
    return sum(word in asked for word in inside) / len(inside) if inside else 0.0


def _weighted(found: Occurrence) -> dict[str, float]:
    counts: dict[str, float] = dict(found.body)
    for weight, inside in ((NAME_WEIGHT, found.names), (PATH_WEIGHT, found.path)):
        for word in inside:
            counts[word] = counts.get(word, 0.0) + weight
    return counts


@lru_cache(maxsize=32_768)
def _name_words(heading: str, names: str) -> frozenset[str]:
    return frozenset(name_words(heading, names))


def _pairs(run: str) -> list[str]:
    # Scripts without blanks: neighbouring characters in pairs, the common way to search them without a dictionary.
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
