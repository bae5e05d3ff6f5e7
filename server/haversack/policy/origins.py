"""What an origin may mean. Clients and tools write the same file in many ways; no spelling makes it less private."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

from haversack.policy.patterns import spell

# Most origins are plain paths with nothing to interpret; a `.` alone is harmless, since paths are normalised anyway.
_PLAIN = re.compile(r"[\w.+=@~\[\]-]+(?:[/ ][\w.+=@~\[\]-]+)*", re.ASCII)
_SCHEME = re.compile(r"/?[A-Za-z][A-Za-z0-9+.-]+:(?://[^/]*(?=/))?")
_DRIVE = re.compile(r"/?[A-Za-z]:/")
# Lines or a fragment behind a path: `a.py:3`, `a.py:3-9`, `a.py#L3`, `a.py (3-9)`.
_TAIL = re.compile(r"(?:[#?].*|(?::\d+(?:[-:,.]\d+)*:?)|\s*\(\d[^)]*\))\s*$", re.DOTALL)


def places(origin: str, folders: Sequence[str]) -> Iterator[str]:
    """Every path inside a folder that `origin` may mean, spelled; its own reading first.

    `folders` are spelled keys, the longest first. Where none of them begins the origin, it may be a path already, or
    begin with the name of a folder that is not open. Of an absolute path, any part may be the folder.
    """
    for form in forms(origin):
        spelled = spell(form)
        key = next((key for key in folders if spelled.startswith(f"{key}/")), None)
        if key is not None:
            yield spelled[len(key) + 1 :]
            continue
        yield spelled
        rest = spelled
        while "/" in rest:
            rest = rest.split("/", 1)[1]
            yield rest
            if not form.startswith("/"):
                break


def forms(origin: str) -> Iterator[str]:
    """The origin as written, and each way of reading it on top of the ways before."""
    yield origin
    if _PLAIN.fullmatch(origin):
        return
    found = dict.fromkeys((origin,))
    for step in _STEPS:
        found.update(dict.fromkeys([step(form) for form in found]))
    del found[origin]
    yield from found


def _without_scheme(text: str) -> str:
    match = _SCHEME.match(text)
    if match is None or _DRIVE.match(text):
        return text
    return text[match.end() :]


def _without_drive(text: str) -> str:
    match = _DRIVE.match(text)
    return text if match is None else f"/{text[match.end() :]}"


def _letters(text: str) -> str:
    """Wide and other forms of letters as the plain ones, and nothing that cannot be seen."""
    seen = "".join(letter for letter in text if unicodedata.category(letter) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", seen).strip()


_STEPS: tuple[Callable[[str], str], ...] = (
    _letters,
    _without_scheme,
    unquote,
    lambda text: text.replace("\\", "/"),
    lambda text: _TAIL.sub("", text),
    _without_drive,
)
