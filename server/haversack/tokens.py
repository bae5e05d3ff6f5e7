"""How many tokens a text costs, by tokenizer family.

`counter("o200k").count(text)` is exact where a tokenizer of that family is installed; otherwise the count is an
estimate that errs high, and `exact` says so. Special tokens in the text (`<|endoftext|>`) are plain text here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from math import ceil
from string import punctuation
from typing import Any, Protocol, cast

from haversack.token_estimate import by_characters

# A text longer than this is counted anew each time: it would crowd the cache, and it is rarely asked for twice.
CACHED_TEXT_LIMIT = 8_192
# An answer counts some 150 texts. Kept are digests, not texts, so that a family's cache takes 3 MB at most.
CACHED_TEXTS = 16_384


class TokenCounter(Protocol):
    """Counts tokens. `name` tells the tokenizer and, for an estimate, what it was derived from."""

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    def count(self, text: str) -> int: ...
    def count_lines(self, lines: Sequence[str]) -> list[int]: ...


def counter(family: str) -> TokenCounter:
    """The best counter installed for a tokenizer family of `policy/models.toml`; never fails. Thread-safe."""
    with _loading:
        return load_counter(family)


@dataclass(frozen=True, slots=True)
class _Counter:
    name: str
    exact: bool
    raw: Callable[[str], int]
    cached: Callable[[str], int]

    def count(self, text: str) -> int:
        if not text:
            return 0
        if len(text) <= CACHED_TEXT_LIMIT:
            return self.cached(text)
        return sum(map(self.raw, _slices(text))) if len(text) > SLICE else self.raw(text)

    def count_lines(self, lines: Sequence[str]) -> list[int]:
        """The cost of each line by itself, for walking to a limit; the sum is about the cost of the whole."""
        return [self.count(line) for line in lines]


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A family without an installed tokenizer: the o200k count times `factor`, plus what o200k does not see.

    `digits`: the family spends one token on each digit where o200k takes three at once.
    `wide`: extra tokens for each non-ASCII character, for vocabularies that have few of them.
    """

    factor: float
    wide: float = 0.0
    digits: bool = True


def _slices(text: str) -> Iterator[str]:
    """The text in parts of about `SLICE` characters, cut where a line begins with a word if there is such a place.

    No tokenizer's rules join a line end with the letter after it, so the parts cost what the whole does; a cut
    elsewhere can only cost more.
    """
    start = 0
    while len(text) - start > SLICE:
        line = _LINE_START.search(text, start + SLICE, start + 2 * SLICE)
        end = line.end() if line else start + SLICE
        yield text[start:end]
        start = end
    yield text[start:]


# A tokenizer holds the interpreter while it counts, and a megabyte of memory for each twenty kilobytes: in parts of
# this many characters, 10 ms each, other answers go on meanwhile.
SLICE = 65_536
_LINE_START = re.compile(r"\n(?=[A-Za-z])")

# Loaders are not known to be safe to run twice at once, and the second caller would only repeat the work.
_loading = threading.Lock()

# family → the encoding's name in quicktok, in splintr. An empty name means that the package does not have it.
ENCODINGS: dict[str, tuple[str, str]] = {
    "o200k": ("o200k_base", "o200k_base"),
    "cl100k": ("cl100k_base", "cl100k_base"),
    "llama3": ("llama3", "llama3"),
    "qwen": ("qwen3", "qwen3"),
    "deepseek": ("", "deepseek_v3"),
    "tekken": ("", "mistral_v3"),
}

# How much more than o200k a family spends, the worst kind of text rounded up: Python, TypeScript, C, JSON, Markdown,
# CJK, Cyrillic, Arabic, emoji, minified JavaScript, base64, hex, blanks and rulers (tests/server/test_tokens.py).
_ESTIMATES: dict[str, _Estimate] = {
    # Used when no tokenizer loads at all: the estimate from characters is made for it.
    "o200k": _Estimate(1.0, digits=False),
    # Used when only the other exact encodings are missing: 1.06 on base64, 1.6 on emoji, 3.3 on Cyrillic and Hindi.
    "cl100k": _Estimate(1.15, wide=0.9, digits=False),
    "llama3": _Estimate(1.15, wide=0.5, digits=False),
    "qwen": _Estimate(1.15, wide=0.8),
    # 1.14 on code, 1.63 on Hindi.
    "deepseek": _Estimate(1.15, wide=0.4, digits=False),
    # 1.26 on C headers, of which digits are a half; 1.8 on emoji.
    "tekken": _Estimate(1.25, wide=1.0),
    # A vocabulary of 32,000: 1.65 on C headers, 2.5 on Chinese, 3.4 on Hindi.
    "llama2": _Estimate(1.6, wide=1.3),
    # No tokenizer is published. The maker's own figures put it up to 30 % above o200k on code; 5 % kept back.
    "claude": _Estimate(1.35, wide=0.6),
    # The tokenizer since Opus 4.7: documented as about 30 %, at most 35 %, more tokens than the one before it.
    "claude-2": _Estimate(1.8, wide=0.8),
    # Shares its vocabulary with Gemma: 1.32 on C headers, of which digits are a part; fewer than o200k on CJK.
    "gemini": _Estimate(1.3, wide=0.1),
    # Nothing is known: the 32,000-word vocabulary is the worst that is still in use.
    "unknown": _Estimate(1.6, wide=1.3),
}


# Every family that a model of the catalogue may name.
FAMILIES = frozenset(_ESTIMATES)


@lru_cache(maxsize=64)
def load_counter(family: str) -> TokenCounter:
    # Where both are installed: splintr loads a family in 0.05 s, quicktok in 0.4 to 0.7 s with the interpreter held,
    # which stalls every answer meanwhile. They count alike, and short texts equally fast.
    for load in (_splintr, _quicktok):
        raw = load(family)
        if raw is not None:
            return _cached(f"{family}/{load.__name__.strip('_')}", True, raw)
    estimate = _ESTIMATES.get(family, _ESTIMATES["unknown"])
    base = _splintr("o200k") or _quicktok("o200k")
    if base is None:
        return _cached(f"{family}~characters", False, lambda text: _scaled(estimate, by_characters(text), text))
    return _cached(f"{family}~o200k", False, lambda text: _scaled(estimate, base(text), text))


def _cached(name: str, exact: bool, raw: Callable[[str], int]) -> TokenCounter:
    return _Counter(name, exact, raw, _remembering(raw))


def _remembering(raw: Callable[[str], int]) -> Callable[[str], int]:
    """`raw` with its last `CACHED_TEXTS` results kept, the oldest leaving first. Safe for several threads."""
    known: dict[bytes, int] = {}
    lock = threading.Lock()

    def count(text: str) -> int:
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        result = known.get(digest)
        if result is None:
            result = raw(text)
            with lock:
                known[digest] = result
                if len(known) > CACHED_TEXTS:
                    del known[next(iter(known))]
        return result

    return count


def _quicktok(family: str) -> Callable[[str], int] | None:
    encoding = ENCODINGS.get(family, ("", ""))[0]
    module = _module("quicktok") if encoding else None
    if module is None:
        return None
    try:
        tokenizer = module.get_encoding(encoding)
    except (KeyError, ValueError, OSError, RuntimeError):
        return None
    count = cast("Callable[[str], int]", tokenizer.count)
    return lambda text: _surrogate_safe(count, text)


def _splintr(family: str) -> Callable[[str], int] | None:
    encoding = ENCODINGS.get(family, ("", ""))[1]
    module = _module("splintr") if encoding else None
    if module is None:
        return None
    try:
        tokenizer = module.Tokenizer.from_pretrained(encoding)
    except (KeyError, ValueError, OSError, RuntimeError):
        return None
    encode = cast("Callable[[str], Sequence[int]]", tokenizer.encode_ordinary)
    return lambda text: _surrogate_safe(lambda part: len(encode(part)), text)


def _module(name: str) -> Any:
    """An optional package, or None when it is not installed or does not load on this platform."""
    try:
        return import_module(name)
    except (ImportError, OSError):
        return None


def _surrogate_safe(count: Callable[[str], int], text: str) -> int:
    """Half a surrogate pair is not UTF-8, so tokenizers refuse it; it is counted as the replacement character."""
    try:
        return count(text)
    except (TypeError, UnicodeError):
        return count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


_DIGITS = re.compile(r"[0-9]{1,3}")


def _scaled(estimate: _Estimate, base: int, text: str) -> int:
    total = base * estimate.factor
    if estimate.digits:
        total += sum(len(group) - 1 for group in _DIGITS.findall(text))
    if estimate.wide and not text.isascii():
        total += estimate.wide * sum(1 for character in text if character > "\x7f")
    return ceil(max(total, _floor(text)))


_SIGNS = punctuation + "\t"


def _floor(text: str) -> float:
    """For rulers and blank lines, which o200k takes 64 characters at once and others in twos to sixteens.

    Two tokens a line, half of one a sign, one for eight characters: on ordinary code that is below its count.
    """
    n_signs = sum(map(text.count, _SIGNS))
    return 2 * text.count("\n") + n_signs / 2 + (len(text) - n_signs) / 8
