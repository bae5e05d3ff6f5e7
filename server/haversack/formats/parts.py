"""What both readers need: checked access to JSON, and text and pictures out of content parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from haversack.types import Image, InvalidRequest

Json = dict[str, Any]

# A reader of one part: its text, or its picture; None for a kind that it does not know.
ReadPart = Callable[[Json, str], str | Image | None]


def fields(value: object, path: str) -> Json:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path}: expected an object.")
    return cast("Json", value)


def items(value: object, path: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise InvalidRequest(f"{path}: expected an array.")
    return list(cast("list[object]", value))


def text(holder: Mapping[str, Any], name: str, path: str, default: str | None = None) -> str:
    value = holder.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise InvalidRequest(f"{path}.{name}: expected a string.")
    return value


def content(value: object, path: str, read_part: ReadPart) -> tuple[str, tuple[Image, ...]]:
    """The text of a string or of a list of parts, one below the other, and the pictures in it."""
    if value is None:
        return "", ()
    if isinstance(value, str):
        return value, ()
    texts: list[str] = []
    images: list[Image] = []
    for at, raw in enumerate(items(value, path)):
        part = fields(raw, f"{path}[{at}]")
        found = read_part(part, f"{path}[{at}]")
        if isinstance(found, Image):
            images.append(found)
        else:
            texts.append(found if found is not None else left_out(part, f"{path}[{at}]"))
    return "\n".join(texts), tuple(images)


def left_out(part: Json, path: str) -> str:
    """A line in place of a part of a kind that is not read."""
    return f"[a part of type {text(part, 'type', path)[:60]} left out]"
