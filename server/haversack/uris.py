"""Which document an address means. One file has many spellings as a URI; `canonical` gives each file one.

RFC 3986 with what editors really send: `file:///c%3A/My%20Proj/a.py`, `file:///C:/My Proj/a.py` and
`file:///c:/My%20Proj/a.py` are one document. Replies keep the client's own spelling; the canonical one is the key.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from urllib.parse import quote, unquote

# A scheme has at least two characters here: `c:\x` is a Windows path, not the scheme `c`.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):")
_DRIVE = re.compile(r"/([A-Za-z]):(?=/|$)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# RFC 3986 section 2.3: these mean the same with and without percent-encoding, in every scheme.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def canonical(uri: str) -> str:
    """The one spelling of `uri` to compare and to look up by. Text that is no URI comes back unchanged."""
    scheme = scheme_of(uri)
    if scheme is None:
        return uri
    if scheme == "file":
        authority, path = _split_file(uri)
        return f"file://{authority}{_quote(path)}"
    return f"{scheme}:{_ESCAPE.sub(_plain_escape, uri[len(scheme) + 1 :])}"


def to_path(uri: str) -> Path | None:
    """The absolute path a `file:` URI names, normalised without looking at the disk; None for every other address.

    `untitled:`, `vscode-notebook-cell:`, `git:` and the like have no path, even when they look like one.
    """
    if scheme_of(uri) != "file":
        return None
    authority, path = _split_file(uri)
    if "\0" in path:
        return None
    if authority:
        return Path(f"//{authority}{path}")
    if os.name == "nt" and _DRIVE.match(path):
        path = path[1:]
    return Path(path)


def from_path(path: Path | str) -> str:
    """The canonical `file:` URI of an absolute path."""
    text = Path(path).as_posix()
    if text.startswith("//"):
        authority, _, rest = text[2:].partition("/")
        return f"file://{authority.lower()}{_quote(_normal('/' + rest))}"
    return f"file://{_quote(_normal(text if text.startswith('/') else '/' + text))}"


def scheme_of(uri: str) -> str | None:
    """The scheme in lower case, None when the text is no URI."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else None


def _split_file(uri: str) -> tuple[str, str]:
    """Authority ("" for this machine) and the decoded, normalised path.

    `#` and `?` are taken as part of the name: editors encode them, and those that do not mean the file.
    """
    rest = uri[len("file:") :].replace("\\", "/")
    authority = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    authority = unquote(authority).lower()
    if authority == "localhost":
        authority = ""
    return authority, _normal(unquote(rest, errors="surrogateescape"))


def _normal(path: str) -> str:
    """Dots, doubled and trailing slashes resolved by the letter; the drive in lower case."""
    normal = posixpath.normpath("/" + path.lstrip("/"))
    return _DRIVE.sub(lambda match: f"/{match.group(1).lower()}:", normal, count=1) if _DRIVE.match(normal) else normal


def _quote(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~", errors="surrogateescape")


def _plain_escape(match: re.Match[str]) -> str:
    character = chr(int(match.group(1), 16))
    return character if character in _UNRESERVED else match.group(0).upper()
