"""Readers of settings: a raw value → the field's value, or ValueError when it is not allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import urlsplit

from haversack.settings_row import Reader, reads

# A text that may be this long gets a box of several lines in editors that draw settings.
_LONG_TEXT = 10_000


def read_tokens(value: object) -> int:
    """`16k`, `128K`, `1m`, `16000` or a number. k is 1,000."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]{1,12}(?:[_,][0-9]{3})*(?:\.[0-9]{1,6})?)\s*([kKmM]?)\s*", value)
        if not found:
            raise ValueError(value)
        unit = {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()]
        value = float(re.sub("[_,]", "", found[1])) * unit
    return int(read_number(value, 1_000, 10_000_000))


@reads(type="string", pattern=r"^\s*(auto|[0-9][0-9_,]*(\.[0-9]+)?\s*[kKmM]?)?\s*$")
def read_window_cap(value: object) -> int:
    if isinstance(value, str) and value.strip().lower() in ("", "auto"):
        return 0
    return read_tokens(value)


@reads(type="number", minimum=0.001, maximum=100)
def read_megabytes(value: object) -> int:
    if isinstance(value, str):
        value = re.sub(r"\s*mb\s*$", "", value, flags=re.IGNORECASE)
    return int(read_number(value, 0.001, 100) * 1_000_000)


def read_number(value: object, low: float, high: float) -> float:
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[0-9]{1,12}(\.[0-9]{1,12})?\s*", value):
            raise ValueError(value)
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(value)
    return float(value)


def whole_number(low: int, high: int) -> Reader[int]:
    @reads(type="integer", minimum=low, maximum=high)
    def read(value: object) -> int:
        number = read_number(value, low, high)
        if number != int(number):
            raise ValueError(value)
        return int(number)

    return read


@reads(type="number", minimum=0, maximum=1)
def read_share(value: object) -> float:
    return read_number(value, 0, 1)


def within(low: float, high: float) -> Reader[float]:
    @reads(type="number", minimum=low, maximum=high)
    def read(value: object) -> float:
        return read_number(value, low, high)

    return read


@reads(type="boolean")
def read_flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(value)


def words(limit: int) -> Reader[str]:
    box = {"editPresentation": "multilineText"} if limit >= _LONG_TEXT else {}

    @reads(type="string", maxLength=limit, **box)
    def read(value: object) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise ValueError(value)
        return value.strip()

    return read


@reads(type="string", pattern=r"^([A-Za-z_]\w{0,99})?$")
def read_variable_name(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"(?:[A-Za-z_]\w{0,99})?", value.strip(), re.ASCII):
        return value.strip()
    raise ValueError("not a name of an environment variable")


def one_of(*choices: str) -> Reader[str]:
    @reads(type="string", enum=[*choices])
    def read(value: object) -> str:
        if not isinstance(value, str) or value.strip().lower() not in choices:
            raise ValueError(value)
        return value.strip().lower()

    return read


@reads(type="string", maxLength=2_000, pattern=r"^(https?://[^\s@/]+(/\S*)?)?$")
def read_web_address(value: object) -> str:
    address = words(2_000)(value)
    if address and not is_web_address(address):
        raise ValueError(value)
    return address


def is_web_address(text: str) -> bool:
    """Whether `text` is an http or https address of a host, without user name or password in it."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


@reads(type="object", additionalProperties={"type": ["string", "integer"]})
def read_windows(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ValueError(value)
    return {str(name): read_tokens(window) for name, window in cast("Mapping[object, object]", value).items()}


@reads(type="array", items={"type": "string"}, uniqueItems=True)
def read_globs(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError("not a list")
    items = cast("Sequence[object]", value)
    globs = [item for item in items if isinstance(item, str)]
    if len(globs) != len(items):
        raise ValueError("not a list of strings")
    return tuple(dict.fromkeys(globs))
