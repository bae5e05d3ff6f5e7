"""Questions in other languages in the words of code, which is written in English: a glossary, not a translator.

Words are found by their beginnings and in compounds (`Fehlermeldung` is `Fehler` and `Meldung`), runs of Chinese and
Japanese by their longest known parts. What the glossary does not know stays as it is written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import cast

from haversack_index.lexical import STOP_WORDS

_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
# Shorter parts inside a word meet by chance.
SHORTEST_INSIDE = 5
# One of three words may be a function word by chance (`le` and `la` name things), two are a language.
FEWEST_SHOWN = 2
# No part of a run in the glossary is longer, in characters.
LONGEST_PART = 7


@dataclass(frozen=True, slots=True)
class _Glossary:
    """The data file, read once."""

    function_words: Mapping[str, frozenset[str]]
    also_english: Mapping[str, frozenset[str]]
    stems: Mapping[str, Mapping[str, tuple[str, ...]]]
    runs: Mapping[str, tuple[str, ...]]


@cache
def _glossary() -> _Glossary:
    text = resources.files("haversack").joinpath("glossary.toml").read_text("utf-8")
    data = cast("Mapping[str, Mapping[str, str]]", tomllib.loads(text))
    return _Glossary(
        {name: frozenset(words.split()) for name, words in data["function_words"].items()},
        {name: frozenset(words.split()) for name, words in data["also_english"].items()},
        {name: _pairs(words) for name, words in data["stems"].items()},
        _pairs(" ".join(data["runs"].values())),
    )


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    parts = (part.partition("=") for part in text.split())
    return {written: tuple(english.split(",")) for written, _, english in parts}


def language_of_question(words: Sequence[str]) -> str:
    """`de`, `fr` or `es` when a question's function words show it, and more of them than of English ones, else ""."""
    lowered = {word.lower() for word in words}
    also = frozenset[str]().union(*_glossary().also_english.values())
    n_english = len((lowered & STOP_WORDS) - also)
    shown = {name: len(lowered & known) for name, known in _glossary().function_words.items()}
    best = max(shown, key=lambda name: shown[name])
    return best if shown[best] >= max(FEWEST_SHOWN, n_english + 1) else ""


def in_english(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each word of a question in another language: what code calls it. () drops a function word.

    A word that the glossary does not know, and every word of an English question, is missing.
    """
    found: dict[str, tuple[str, ...]] = {}
    language = language_of_question(words)
    glossary = _glossary()
    for word in words:
        if _RUN.search(word):
            parts = tuple(dict.fromkeys(_of_run(word)))
            if parts:
                found[word] = parts
        elif language:
            lowered = word.lower()
            if lowered in glossary.function_words[language] | glossary.also_english[language]:
                found[word] = ()
            elif parts := _of_word(lowered, glossary.stems[language]):
                # `assert-Ausdrücke` is half English: that half is as good as a translation.
                known = [
                    half
                    for half in word.split("-")
                    if half.isascii() and not _of_word(half.lower(), glossary.stems[language])
                ]
                found[word] = tuple(dict.fromkeys((*(known if "-" in word else ()), *parts)))
    return found


def english_only(terms: Sequence[str], english: Mapping[str, tuple[str, ...]]) -> str:
    """The search terms of a question without its own words, where `in_english` found any; "" for an English one."""
    if not any(english.values()):
        return ""
    return " ".join(term for term in terms if term not in english and not _RUN.search(term))


def _of_word(word: str, stems: Mapping[str, tuple[str, ...]]) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(word):
        shortest = SHORTEST_INSIDE if at else 1
        ends = range(len(word), at + shortest - 1, -1)
        stem = next((word[at:end] for end in ends if word[at:end] in stems), "")
        found += stems.get(stem, ())
        at += len(stem) or 1
    return found


def _of_run(text: str) -> list[str]:
    found: list[str] = []
    runs = _glossary().runs
    for run in _RUN.findall(text):
        at = 0
        while at < len(run):
            part = next((run[at:end] for end in range(at + LONGEST_PART, at, -1) if run[at:end] in runs), "")
            found += runs.get(part, ())
            at += len(part) or 1
    return found
