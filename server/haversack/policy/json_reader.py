"""JSON text as a tree in which every key and every value knows its place, so that findings can point at them.

Stricter than `json.loads`: no key twice in one object, no NaN, nothing nested deeper than any policy is, and every name
and number of a size that a person could have written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

# A policy nests five deep: `documents.tenants.NAME[0]`, inside its object.
MAX_DEPTH = 12
# Values of one document. A thousand rules with every key have a tenth of that.
MAX_VALUES = 100_000

Scalar = str | int | float | bool | None
Span = tuple[int, int]
"""Offsets of the first character and of the one after the last."""

NOWHERE: Span = (0, 0)


class Unreadable(Exception):
    """The text is no JSON that is taken. `code` is that of the finding."""

    def __init__(self, code: str, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Node:
    """One value. An object has `members`, an array `items`, everything else a `scalar`."""

    span: Span
    scalar: Scalar = None
    members: tuple[Member, ...] | None = None
    items: tuple[Node, ...] | None = None


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    key_span: Span
    value: Node


def read_text(text: str) -> Node:
    """Raises `Unreadable`."""
    reader = _Reader(text)
    node = reader.value(0)
    reader.blank()
    if reader.at < len(text):
        raise Unreadable("syntax", "More text follows the end of the policy.", reader.at)
    return node


def read_value(value: object, depth: int = 0) -> Node:
    """The same tree for a value that came without text, in a request. Raises `Unreadable`."""
    if depth > MAX_DEPTH:
        raise _too_deep(0)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        members = tuple(Member(str(key), NOWHERE, read_value(each, depth + 1)) for key, each in pairs)
        return Node(NOWHERE, members=members)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return Node(NOWHERE, items=tuple(read_value(each, depth + 1) for each in cast("Sequence[object]", value)))
    if value is None or isinstance(value, str | int | float | bool):
        return Node(NOWHERE, value)
    raise Unreadable("syntax", f"A policy can't hold a value of type {type(value).__name__}.")


_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?(?![0-9.eE])")
_WORD = re.compile(r"true|false|null")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Reader:
    """Walks the text once; `at` is the next character."""

    def __init__(self, text: str) -> None:
        self.at = 0
        self._text = text
        self._n_values = 0

    def value(self, depth: int) -> Node:
        self.blank()
        self._n_values += 1
        if depth > MAX_DEPTH:
            raise _too_deep(self.at)
        if self._n_values > MAX_VALUES:
            raise Unreadable("too_large", f"A policy holds at most {MAX_VALUES:,} values.", self.at)
        start = self.at
        match self._peek():
            case "{":
                return self._object(start, depth)
            case "[":
                return self._array(start, depth)
            case '"':
                text = self._string("")
                return Node((start, self.at), text)
            case _:
                return self._plain(start)

    def blank(self) -> None:
        found = _BLANK.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        seen: set[str] = set()
        self.at += 1
        self.blank()
        while self._peek() != "}":
            key_start = self.at
            key = self._string("A key in double quotes, or }, must stand here.")
            key_span = (key_start, self.at)
            if key in seen:
                raise Unreadable("duplicate_key", "This key stands twice in one object.", key_start)
            seen.add(key)
            self.blank()
            self._take(":", "A colon must follow the key.")
            members.append(Member(key, key_span, self.value(depth + 1)))
            if not self._goes_on("}"):
                break
        self._take("}", "A comma or } must stand here.")
        return Node((start, self.at), members=tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        self.at += 1
        self.blank()
        while self._peek() != "]":
            items.append(self.value(depth + 1))
            if not self._goes_on("]"):
                break
        self._take("]", "A comma or ] must stand here.")
        return Node((start, self.at), items=tuple(items))

    def _goes_on(self, close: str) -> bool:
        """Step over the comma after a member; False when there is none."""
        self.blank()
        if self._peek() != ",":
            return False
        comma = self.at
        self.at += 1
        self.blank()
        if self._peek() == close:
            raise Unreadable("syntax", f"A comma stands before {close}; JSON takes none there.", comma)
        return True

    def _string(self, missing: str) -> str:
        if missing and self._peek() != '"':
            raise Unreadable("syntax", missing, self.at)
        found = _STRING.match(self._text, self.at)
        if found is None:
            raise Unreadable("syntax", "This string has no end, or a character or an escape that JSON lacks.", self.at)
        self.at = found.end()
        return _SURROGATE.sub("\ufffd", json.loads(found[0]))

    def _plain(self, start: int) -> Node:
        found = _WORD.match(self._text, start) or _NUMBER.match(self._text, start)
        if found is None:
            said = "The policy ends too soon." if start >= len(self._text) else "No JSON value starts like this."
            if self._text.startswith(("//", "/*", "#"), start):
                said = "JSON has no comments."
            raise Unreadable("syntax", said, start)
        self.at = found.end()
        return Node((start, self.at), cast("Scalar", json.loads(found[0])))

    def _take(self, mark: str, missing: str) -> None:
        if self._peek() != mark:
            raise Unreadable("syntax", missing, self.at)
        self.at += 1

    def _peek(self) -> str:
        return self._text[self.at : self.at + 1]


def _too_deep(offset: int) -> Unreadable:
    return Unreadable("too_deep", f"Values are nested deeper than {MAX_DEPTH} here; no policy is.", offset)
