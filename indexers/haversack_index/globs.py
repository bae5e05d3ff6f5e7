"""Wildcard patterns of ignore files as regular expressions that cannot backtrack without end.

The semantics are those of git's ignore files, over bytes: `*` and `?` stay inside one path component, `**` spans
components only when it stands alone between slashes, a class never matches a slash.

Why this is fast on hostile patterns: every element but a star matches exactly one byte, so within a component the
leftmost place where the piece after a star fits is never worse than a later one, and likewise for the run of
components after a `**`. Each such choice is therefore made once (an atomic group) and never reconsidered.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

# Longer patterns are taken to match nothing: no path is longer, and compiling them would cost real time.
MAX_PATTERN = 4096

SPECIAL = frozenset(b"*?[\\")

_SLASH = ord("/")

_POSIX_CLASSES: dict[bytes, frozenset[int]] = {
    b"alnum": frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"alpha": frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset([*range(32), 127]),
    b"digit": frozenset(b"0123456789"),
    b"graph": frozenset(range(33, 127)),
    b"lower": frozenset(b"abcdefghijklmnopqrstuvwxyz"),
    b"print": frozenset(range(32, 127)),
    b"punct": frozenset(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}
_LOWER = _POSIX_CLASSES[b"lower"]
# Distance between an ASCII letter's two cases.
_CASE_GAP = 32


class _Mark(Enum):
    STAR = "star"  # any bytes of one component
    SLASH = "slash"
    ANY_DIRECTORIES = "any directories"  # zero or more whole components, each with its slash
    SOME_DIRECTORIES = "some directories"  # one or more
    REST = "rest"  # everything that is left


_Token = _Mark | bytes
"""A mark, or the regular expression of exactly one byte."""


@lru_cache(maxsize=4096)
def compile_glob(pattern: bytes, fold: bool = False) -> re.Pattern[bytes] | None:
    """A regular expression for `.match(subject)`, anchored at both ends; None when nothing can ever match.

    With `fold` the subject must be given in lower case (ASCII letters only).
    """
    tokens = _tokens(pattern, fold)
    if tokens is None:
        return None
    groups: list[list[_Token]] = [[]]
    for token in tokens:
        if token in (_Mark.ANY_DIRECTORIES, _Mark.SOME_DIRECTORIES):
            groups.append([])
        groups[-1].append(token)
    last = len(groups) - 1
    parts = [b"(?>%s)" % _group(group) if 0 < i < last else _group(group) for i, group in enumerate(groups)]
    return re.compile(b"".join(parts) + rb"\Z", re.DOTALL)


def literal_prefix(pattern: bytes) -> int:
    """The number of bytes before the first one with a special meaning."""
    return next((i for i, byte in enumerate(pattern) if byte in SPECIAL), len(pattern))


def _tokens(pattern: bytes, fold: bool) -> list[_Token] | None:
    if len(pattern) > MAX_PATTERN:
        return None
    out: list[_Token] = []
    i, end = 0, len(pattern)
    while i < end:
        byte = pattern[i : i + 1]
        if byte == b"*":
            run_end = i
            while run_end < end and pattern[run_end] == ord("*"):
                run_end += 1
            alone = run_end - i > 1 and (i == 0 or pattern[i - 1] == _SLASH)
            if alone and run_end == end:
                out.append(_Mark.REST)
            elif alone and pattern[run_end] == _SLASH:
                out.append(_Mark.ANY_DIRECTORIES)
                run_end += 1
            elif alone and pattern[run_end : run_end + 2] == b"\\/":
                out.append(_Mark.SOME_DIRECTORIES)
                run_end += 2
            else:
                out.append(_Mark.STAR)
            i = run_end
        elif byte == b"?":
            out.append(b"[^/]")
            i += 1
        elif byte == b"[":
            parsed = _parse_class(pattern, i, fold)
            if parsed is None:
                return None
            expression, i = parsed
            out.append(expression)
        else:
            if byte == b"\\":
                i += 1
                byte = pattern[i : i + 1]
                if not byte:
                    return None
            out.append(_Mark.SLASH if byte == b"/" else re.escape(byte.lower() if fold else byte))
            i += 1
    return out


def _group(tokens: list[_Token]) -> bytes:
    """The expression of a run of components that starts at most one directory wildcard."""
    out: list[bytes] = []
    pieces: list[bytes] = [b""]  # of the present component, split at its stars

    def close() -> None:
        out.append(pieces[0])
        out.extend(b"(?>[^/]*?%s)" % piece for piece in pieces[1:-1])
        if len(pieces) > 1:
            out.append(b"[^/]*" + pieces[-1])
        pieces[:] = [b""]

    for token in tokens:
        match token:
            case _Mark.STAR:
                pieces.append(b"")
            case _Mark.SLASH:
                close()
                out.append(b"/")
            case _Mark.ANY_DIRECTORIES:
                out.append(b"(?:[^/]*/)*?")
            case _Mark.SOME_DIRECTORIES:
                out.append(b"(?:[^/]*/)+?")
            case _Mark.REST:
                close()
                out.append(b".*")
            case bytes():
                pieces[-1] += token
    close()
    return b"".join(out)


def _parse_class(pattern: bytes, start: int, fold: bool) -> tuple[bytes, int] | None:
    """The expression of the bracket at `start` and the index after it; None when malformed or empty."""
    i = start + 1
    negated = pattern[i : i + 1] in (b"!", b"^")
    if negated:
        i += 1
    members: set[int] = set()
    previous = -1  # the byte a following "-" would start a range from
    first = True
    while True:
        if i >= len(pattern):
            return None
        byte = pattern[i]
        if byte == ord("]") and not first:
            break
        first = False
        if byte == ord("\\"):
            i += 1
            if i >= len(pattern):
                return None
            members.add(pattern[i])
            previous = pattern[i]
        elif byte == ord("-") and previous >= 0 and i + 1 < len(pattern) and pattern[i + 1] != ord("]"):
            i += 1
            if pattern[i] == ord("\\"):
                i += 1
                if i >= len(pattern):
                    return None
            span = range(previous, pattern[i] + 1)
            members.update(span)
            if fold:
                members.update(byte for byte in _LOWER if byte - _CASE_GAP in span)
            previous = -1
        elif byte == ord("[") and pattern[i + 1 : i + 2] == b":":
            close = pattern.find(b"]", i + 2)
            if close < 0:
                return None
            if close - i < 3 or pattern[close - 1] != ord(":"):
                members.add(byte)  # not a named class after all: an ordinary bracket
                previous = byte
            else:
                named = _POSIX_CLASSES.get(pattern[i + 2 : close - 1])
                if named is None:
                    return None
                members.update(named)
                if fold and named is _POSIX_CLASSES[b"upper"]:
                    members.update(_LOWER)
                i = close
                previous = -1
        else:
            members.add(byte)
            previous = byte
        i += 1
    if negated:
        members = set(range(256)) - members
    members.discard(_SLASH)
    if not members:
        return None
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]", i + 1
