"""Globs of policy lists, written as in `.gitignore`: privacy and routing read one pattern in one way."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from haversack_index.globs import SPECIAL, compile_glob

# Paths come up again and again in one request and the next, and never in more than this many forms.
MAX_REMEMBERED = 20_000
# What may not be in the plain end of a pattern; `]` may close a class, and without one `[` is malformed.
_NOT_PLAIN = re.compile(rb"[*?\]\\/]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """`anchored` patterns see the path from the folder's root, the others each name in it.

    `head` are the directories that an anchored pattern begins with, as far as they are written out. `tail` is what the
    name of each path that the pattern matches ends with.
    """

    expression: re.Pattern[bytes]
    anchored: bool
    directory: bool
    head: bytes = b""
    tail: bytes = b""

    def matches(self, step: Step) -> bool:
        if self.directory and not step.is_directory:
            return False
        return self.expression.match(step.whole if self.anchored else step.name) is not None


@dataclass(frozen=True, slots=True)
class Step:
    """A path, or one of the directories above it."""

    whole: bytes
    name: bytes
    is_directory: bool


def compile_pattern(line: str) -> Pattern | None:
    """A pattern as in `.gitignore`; None when it is malformed or can match nothing, which is never what was meant.

    Letter case is ignored. Comments and exceptions (`#`, `!`) are no patterns: whoever reads a list deals with them.
    """
    directory = line.endswith("/")
    body = unicodedata.normalize("NFC", line.rstrip("/")).casefold()
    anchored = "/" in body
    body = body.removeprefix("/")
    try:
        expression = compile_glob(body.encode(), fold=True) if body else None
    except (re.error, UnicodeError, RecursionError):
        return None
    if expression is None:
        return None
    plain = body.encode()
    return Pattern(expression, anchored, directory, _head(plain) if anchored else b"", _NOT_PLAIN.split(plain)[-1])


def steps(path: str) -> Iterator[Step]:
    """The directories above a spelled path, outermost first, then the path itself."""
    parts = path.split("/")
    for n_parts in range(1, len(parts) + 1):
        yield Step("/".join(parts[:n_parts]).encode(), parts[n_parts - 1].encode(), n_parts < len(parts))


def spell(path: str) -> str:
    """One spelling of a path. Letter case and composition are ignored: on some disks they name the same file."""
    plain = path.encode("utf-8", "replace").decode()
    return posixpath.normpath(unicodedata.normalize("NFC", plain).casefold()).lstrip("/")


def _head(body: bytes) -> bytes:
    head: list[bytes] = []
    for part in body.split(b"/")[:-1]:
        if not SPECIAL.isdisjoint(part):
            break
        head.append(part)
    return b"/".join(head)
