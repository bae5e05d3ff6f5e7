"""Finds secrets in text by the rules of `secret_rules.toml`: keys, tokens, passwords.

Most text holds none, so it is first searched for the rules' keywords, which takes a few milliseconds a megabyte; a
rule's pattern is tried only where one of its keywords stands.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes of the shortest keyword.
SHORTEST = 3
# Bytes of the longest match of a rule that looks around a keyword.
LONGEST = 200
# Words that stand in for a secret, wherever they are in it.
_STAND_IN = re.compile(
    rb"example|placeholder|redacted|xxxx|your[-_ ]|\*\*\*\*|\.\.\.|(?:abc){2}|0{8}",
    re.IGNORECASE,
)
# The same where only a name says that a secret is there: lookups, templates and the words people write in examples.
_NAMED_STAND_IN = re.compile(
    rb"^[$%{<]|\$\{|\{\{|%\(|<|os\.environ|process\.env|getenv|env[.\[]|change[-_]?(?:me|it|this)|replace|insert|dummy"
    rb"|fake|sample|todo|1234567|abcdefg|qwerty|my[-_]|-here$|^(?:none|null|true|false|undefined|string|test\w{0,4})$"
    rb"|^(?:my|the|a|some|new|old|user)?[-_]?(?:pass(?:w(?:or)?d)?|pwd?|secret|token|key|passphrase)[-_!]?\d{0,3}$",
    re.IGNORECASE,
)
# Names of code, and what looks random but is no secret where only a name could have told: a UUID, a digest of git.
_CODE_NAME = re.compile(rb"_?[A-Za-z]+(?:[_.-][A-Za-z]+)*[_.-]?\d{0,2}|[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+")
_UUID_OR_DIGEST = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?:sha\d+[-:])?[0-9a-f]{40}")
# Rules whose names are given to things that are no secrets as well.
_WEAK = frozenset({"token", "configured-secret"})
# Lines of a key whose first line is not there: in a diff, or in what somebody pasted.
_KEY_LINES = re.compile(
    rb"^(?:[ +-]?(?:[A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})\r?$\n?){2,1000}+", re.MULTILINE
)
_KEY_END = re.compile(rb"[ +-]?(?:[A-Za-z0-9+/]{12,75}|[A-Za-z0-9+/]{1,75}={1,2})\r?$", re.MULTILINE)
_PUBLIC = re.compile(
    rb"-----BEGIN (?:CERTIFICATE|PUBLIC KEY|RSA PUBLIC KEY|CERTIFICATE REQUEST|X509 CRL)-----\r?\n[ +-]?$"
)
# Characters without a width, which people do not see: they come with text from web pages.
_UNSEEN = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands, in characters; `kind` is the id of the rule that found it. Never carries its text."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of `secret_rules.toml`, which explains the fields."""

    id: str
    keywords: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    floor: float
    before: int
    around: int
    named: bool
    finds: tuple[str, ...]
    misses: tuple[str, ...]


def find_secrets(text: str, *, fragment: bool = False) -> tuple[Secret, ...]:
    """Every secret in a text, in order, none overlapping. Takes time in proportion to the text's length.

    `fragment`: the text may begin in the middle of a file, so lines that can only be a key's count as one.
    """
    if text.isascii() or not _UNSEEN.search(text):
        return _found(text, fragment)
    # What cannot be seen is no part of a secret, but may stand inside it; places are those in the text as it came.
    seen = [at for at, letter in enumerate(text) if not _UNSEEN.match(letter)]
    without = _found(_UNSEEN.sub("", text), fragment)
    inside = [(seen[each.start], seen[each.end - 1] + 1, 0, each.kind) for each in without]
    outside = [(each.start, each.end, 1, each.kind) for each in _found(text, fragment)]
    return tuple(Secret(kind, start, end) for start, end, kind in _united((*inside, *outside)))


def _found(text: str, fragment: bool) -> tuple[Secret, ...]:
    data = text.encode("utf-8", "surrogatepass")
    found = [*_by_rules(data), *(_by_lines(data) if fragment else ())]
    if not found:
        return ()
    places = _united(found)
    if len(data) == len(text):
        return tuple(Secret(kind, start, end) for start, end, kind in places)
    return tuple(_in_characters(data, places))


def without_secrets(text: str) -> str:
    """The text with its secrets cut out: for what is searched for, and for hashes of short texts."""
    at = 0
    pieces: list[str] = []
    for secret in find_secrets(text, fragment=True):
        pieces.append(text[at : secret.start])
        at = secret.end
    return "".join((*pieces, text[at:]))


def _by_rules(data: bytes) -> Iterator[tuple[int, int, int, str]]:
    """Start, end, the rule's rank and its id; in bytes."""
    searched: dict[int, int] = {}  # how far a rule that looks around has looked
    for at, keyword in _keywords_in(data.lower()):
        for rank, rule in _by_keyword()[keyword]:
            if rule.around:
                start = max(searched.get(rank, 0), at - rule.around)
                end = searched[rank] = max(start, at + len(keyword) + rule.around)
                all_matches = rule.pattern.finditer(data, start, end + LONGEST)
                matches = [match for match in all_matches if match.start() < end]
            else:
                match = rule.pattern.match(data, max(0, at - rule.before))
                matches = [match] if match is not None else []
            for match in matches:
                start, end = _hidden(match)
                if _is_secret(data[start:end], rule):
                    yield start, end, rank, rule.id


def _keywords_in(lower: bytes) -> Iterator[tuple[int, bytes]]:
    """Every keyword in the text with its place, in order.

    Two tables of byte pairs say at each place which groups of keywords could begin there: both pairs of the first four
    bytes have to agree on a group. That passes over nearly all of a text at the same cost for any number of keywords.
    """
    first, second = _pair_tables()
    by_start = _by_start()
    padded = lower + b"\0" * (5 - len(lower) % 2)  # the last keyword's second pair may lie behind the end
    places: list[NDArray[np.intp]] = []
    for offset in (0, 1):
        pairs = np.frombuffer(padded, ">u2", (len(padded) - offset) // 2, offset)
        places.append(2 * np.flatnonzero(first[pairs[:-1]] & second[pairs[1:]]) + offset)
    for at in np.sort(np.concatenate(places)).tolist():
        for keyword in by_start.get(lower[at : at + SHORTEST], ()):
            if lower.startswith(keyword, at):
                yield at, keyword


def _hidden(match: re.Match[bytes]) -> tuple[int, int]:
    group = match.lastgroup
    return match.span(group) if group is not None else match.span()


def _is_secret(value: bytes, rule: Rule) -> bool:
    if entropy(value) < rule.floor or _STAND_IN.search(value):
        return False
    if not rule.named:
        return True
    if _NAMED_STAND_IN.search(value):
        return False
    if rule.id in _WEAK and (_UUID_OR_DIGEST.fullmatch(value) or _CODE_NAME.fullmatch(value)):
        return False
    return not (rule.id == "secret" and _CODE_NAME.fullmatch(value))


def entropy(value: bytes) -> float:
    """Bits a byte: 0 when all are the same, log2 of the length at most."""
    n = len(value)
    return -sum(count / n * math.log2(count / n) for count in Counter(value).values()) if n else 0.0


def _by_lines(data: bytes) -> Iterator[tuple[int, int, int, str]]:
    for match in _KEY_LINES.finditer(data):
        start, end = match.span()
        if _PUBLIC.search(data, max(0, start - 60), start) or entropy(data[start:end]) < 4.5:
            continue
        last = _KEY_END.match(data, end)
        yield start, last.end() if last is not None else end, len(rules()), "private-key"


def _united(found: Iterable[tuple[int, int, int, str]]) -> list[tuple[int, int, str]]:
    """Overlapping places as one, called by the rule that comes first in the table."""
    places: list[tuple[int, int, int, str]] = []
    for start, end, rank, kind in sorted(found):
        if places and start < places[-1][1]:
            earlier = places[-1]
            best = min((earlier[2], earlier[3]), (rank, kind))
            places[-1] = (earlier[0], max(earlier[1], end), *best)
        else:
            places.append((start, end, rank, kind))
    return [(start, end, kind) for start, end, _, kind in places]


def _in_characters(data: bytes, places: Iterable[tuple[int, int, str]]) -> Iterator[Secret]:
    at = n_characters = 0
    for start, end, kind in places:
        # A pattern of bytes may begin or end inside a letter; the whole letter is hidden.
        while start > at and data[start] & 0xC0 == 0x80:
            start -= 1  # noqa: PLW2901
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1  # noqa: PLW2901
        first = n_characters + len(data[at:start].decode("utf-8", "surrogatepass"))
        last = first + len(data[start:end].decode("utf-8", "surrogatepass"))
        yield Secret(kind, first, last)
        at, n_characters = end, last


@cache
def rules() -> tuple[Rule, ...]:
    """The table, read once."""
    table: dict[str, Any] = tomllib.loads((Path(__file__).parent / "secret_rules.toml").read_text("utf-8"))
    parts: dict[str, str] = table["parts"]
    return tuple(_rule(row, parts) for row in table["rules"])


@cache
def _by_keyword() -> dict[bytes, tuple[tuple[int, Rule], ...]]:
    found: dict[bytes, tuple[tuple[int, Rule], ...]] = {}
    for rank, rule in enumerate(rules()):
        for keyword in rule.keywords:
            found[keyword] = (*found.get(keyword, ()), (rank, rule))
    return found


@cache
def _by_start() -> dict[bytes, tuple[bytes, ...]]:
    found: dict[bytes, tuple[bytes, ...]] = {}
    for keyword in _by_keyword():
        found[keyword[:SHORTEST]] = (*found.get(keyword[:SHORTEST], ()), keyword)
    return found


@cache
def _pair_tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each pair of bytes, one bit for each group of keywords that has it as its first, or as its second."""
    first, second = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    for place, keyword in enumerate(sorted(_by_keyword())):
        bit = 1 << place % 8
        first[keyword[0] << 8 | keyword[1]] |= bit
        third = keyword[2] << 8
        last = slice(third, third + 256) if len(keyword) == SHORTEST else third | keyword[3]
        second[last] |= bit
    return first, second


def _rule(row: dict[str, Any], parts: dict[str, str]) -> Rule:
    pattern: str = row["pattern"]
    for name, part in parts.items():
        pattern = pattern.replace(f"<<{name}>>", part)
    return Rule(
        id=row["id"],
        keywords=tuple(keyword.encode() for keyword in row["keywords"]),
        pattern=re.compile(pattern.encode()),
        floor=float(row.get("floor", 0)),
        before=row.get("before", 0),
        around=row.get("around", 0),
        named=row.get("named", False),
        finds=tuple("".join(pieces) for pieces in row["finds"]),
        misses=tuple("".join(pieces) for pieces in row["misses"]),
    )
