"""One spelling for equal JSON values, so that equal values have equal digests.

The order of keys does not count, that of arrays does; a number is spelled by its value, so `1`, `1.0` and `1e0` are
one, and an integer of any length keeps all its digits. Text is taken as it is: composed and decomposed letters differ.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import cast

# Deeper than data that people hand to a model, far from where reading it could exhaust a stack.
MAX_DEPTH = 64
# Python spells integers of up to 4,300 digits; no count, amount or key in use comes near.
MAX_INTEGER_BITS = 4_096


class NotCanonical(ValueError):
    """The value has no canonical spelling; the message says why and names no content."""


def canonical_json(value: object) -> str:
    """The one spelling of a JSON value. Raises `NotCanonical` for what JSON cannot carry and for extreme shapes."""
    return _dump(_normal(value, MAX_DEPTH))


def digest_of(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(utf8(text)).hexdigest()


def identity(value: object) -> str:
    """SHA-256 of a value that has no number but integers and such as `canonical_json` spelled."""
    return digest_of(_dump(value))


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises `NotCanonical` for half of a surrogate pair, which no encoding carries."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical("has half of a character") from None


_dump = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _normal(value: object, depth: int) -> object:
    """The value with every number in the form that the encoder spells by its value."""
    if isinstance(value, str):
        return _whole(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise NotCanonical(f"has an integer of more than {MAX_INTEGER_BITS:,} bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotCanonical("has a number that is not finite")
        return int(value) if value.is_integer() else value
    if depth == 0:
        raise NotCanonical(f"is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return [_normal(each, depth - 1) for each in cast("list[object]", value)]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_key(name): _normal(each, depth - 1) for name, each in pairs}
    raise NotCanonical("has a value that is no JSON")


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise NotCanonical("has a key that is no string")
    return _whole(name)


def _whole(text: str) -> str:
    utf8(text)
    return text
