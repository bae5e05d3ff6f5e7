"""What a selected document is read with: statements that cannot give a document its reader may not have.

Every statement here carries the exclusions itself, as functions of the row's path, so that no caller can forget
them. The functions are the caller's rules: the index knows documents by their paths and no policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import apsw

RECORD = "record"  # a document's home: what anybody may work with
STRATEGY = "strategy"  # what people may view and agents may not have


@dataclass(frozen=True, slots=True)
class Access:
    """The rules by path, and the reader: `tenant` "" is nobody's; `viewing`: it is shown to a person."""

    is_privileged: Callable[[str], bool]
    home: Callable[[str], str]
    owner: Callable[[str], str]  # "": nobody's alone
    tenant: str = ""
    viewing: bool = False


_ALLOWED = (
    "NOT is_privileged(f.path) AND (home(f.path)='record' OR (:viewing AND home(f.path)='strategy'))"
    " AND tenant(f.path) IN ('', :tenant)"
)

# Name to statement; all take :path, :content_hash, :viewing and :tenant, and test them all.
STATEMENTS = {
    "document": (
        "SELECT f.path, f.content_hash, f.size, f.mtime_ns, f.language, f.n_lines, f.generation, f.note"
        f" FROM files f WHERE f.path=:path AND f.content_hash=:content_hash AND {_ALLOWED}"
    ),
    "sections": (
        "SELECT s.name, s.kind, f.path, s.start, s.end, s.line, s.signature_end, s.container, s.signature, s.language,"
        " s.depth FROM symbols s JOIN files f ON f.id=s.file_id"
        f" WHERE f.path=:path AND f.content_hash=:content_hash AND {_ALLOWED} ORDER BY s.line, s.depth"
    ),
}


def admit(connection: apsw.Connection, access: Access) -> None:
    """Makes the reader's rules known to this connection, until the next reader's."""
    for name, rule in (("is_privileged", access.is_privileged), ("home", access.home), ("tenant", access.owner)):
        cast("Any", connection).create_scalar_function(name, rule, 1, deterministic=True)  # its types say `*args`


def values(path: str, content_hash: str, access: Access) -> dict[str, Any]:
    return {"path": path, "content_hash": content_hash, "viewing": access.viewing, "tenant": access.tenant}
