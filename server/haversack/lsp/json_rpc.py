"""JSON-RPC messages as bytes, and the errors that can stand in an answer."""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Code(IntEnum):
    """Error codes of JSON-RPC 2.0 and of LSP 3.17."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_NOT_INITIALIZED = -32002
    REQUEST_CANCELLED = -32800
    REQUEST_FAILED = -32803


class Failure(Exception):
    """An answer that is an error."""

    def __init__(self, code: Code, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def parse(body: bytes) -> object:
    """The message in `body`; raises `Failure` when it is none. Half characters in it are replaced."""
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise Failure(Code.PARSE_ERROR, "The message is nested too deeply.") from None
    except ValueError:
        raise Failure(Code.PARSE_ERROR, "The message is not JSON in UTF-8.") from None
    return _whole_characters(message) if _ESCAPED_SURROGATE.search(body) else message


def _whole_characters(message: object) -> object:
    """Half a character, which JSON can spell and UTF-8 cannot carry, becomes U+FFFD. Walks without recursion."""
    todo: list[Any] = [[message]]
    whole = todo[0]
    while todo:
        box = todo.pop()
        is_object = bool(isinstance(box, dict))
        for name in list(box) if is_object else range(len(box)):
            place: Any = name
            if is_object and (place := without_halves(str(name))) != name:
                box[place] = box.pop(name)
            inner = box[place]
            if isinstance(inner, str):
                box[place] = without_halves(inner)
            elif isinstance(inner, dict | list):
                todo.append(inner)
    return whole[0]


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def encode(message: object) -> bytes:
    """Raises ValueError, TypeError or RecursionError for what strict clients could not read."""
    return json.dumps(message, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def without_halves(text: str) -> str:
    """Half a character, which JSON can spell and UTF-8 cannot carry, becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
