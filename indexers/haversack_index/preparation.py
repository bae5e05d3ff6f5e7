"""Which rules a file was prepared by: a digest of what decides how files are cut, named and split into words.

An index that another build of the package made is right by that build's rules. Its files go on answering and are
prepared again one by one, so that old and new rules are never mixed for longer than that takes.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from hashlib import blake2b
from importlib.resources import files

# The modules that turn bytes into rows. Vectors are not among their concerns: an embedder's own id tells them apart.
MODULES = (
    "chunk",
    "contents",
    "cut",
    "definitions",
    "languages",
    "lexical",
    "parse",
    "prepare",
    "sections",
    "symbols",
    "text",
)

# Metadata folders of parsers and grammars tell name and version; asking `importlib.metadata` costs a tenth of a start.
_GRAMMARS = re.compile(r"tree_sitter\w*-[^-]+\.(?:dist|egg)-info")


@cache
def current() -> str:
    """The rules of this process, as hex of 6 bytes."""
    digest = blake2b(digest_size=6)
    package = files("haversack_index")
    for name in MODULES:
        source = package / f"{name}.py"
        _add(digest, name, source.read_bytes() if source.is_file() else b"")
    for query in sorted((package / "queries").iterdir(), key=lambda item: item.name):
        _add(digest, query.name, query.read_bytes())
    for name in sorted(_grammar_packages()):
        _add(digest, name, b"")
    return digest.hexdigest()


def _add(digest: blake2b, name: str, data: bytes) -> None:
    digest.update(b"%b\0%d\0%b" % (name.encode(), len(data), data))


def _grammar_packages() -> set[str]:
    found: set[str] = set()
    for folder in sys.path:
        try:
            found.update(name for name in os.listdir(folder or ".") if _GRAMMARS.fullmatch(name))
        except OSError:  # not a folder, or not there
            continue
    return found
