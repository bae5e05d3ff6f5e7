"""The messages about core memories; a part of `protocol`."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from haversack.lsp.places import Uint


@attrs.frozen
class MemoryAddParams:
    category: str
    title: str
    content: str
    scope: str
    keywords: tuple[str, ...] = ()
    private: bool = False
    origins: tuple[str, ...] = ()
    workspace_folder: str | None = None


@attrs.frozen
class MemoryUpdateParams:
    id: str
    category: str | None = None
    title: str | None = None
    content: str | None = None
    keywords: tuple[str, ...] | None = None
    private: bool | None = None
    origins: tuple[str, ...] = ()
    workspace_folder: str | None = None


@attrs.frozen
class MemoryParams:
    id: str
    workspace_folder: str | None = None


@attrs.frozen
class MemorySearchParams:
    query: str
    limit: Uint = Uint(10)
    workspace_folder: str | None = None


@attrs.frozen
class MemoriesParams:
    workspace_folder: str | None = None


@attrs.frozen
class MemoryResult:
    id: str
    category: str
    title: str
    content: str
    keywords: tuple[str, ...]
    scope: str
    workspace_folder: str | None
    created: float
    updated: float
    private: bool
    origins: tuple[str, ...]
    score: float | None


@attrs.frozen
class MemoriesResult:
    memories: tuple[MemoryResult, ...]


@attrs.frozen
class MemoryNote:
    name: str
    reason: str


@attrs.frozen
class MemoryExportResult:
    paths: tuple[str, ...]
    left_out: tuple[MemoryNote, ...]


@attrs.frozen
class MemoryImportResult:
    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    kept: tuple[str, ...]
    bad_files: tuple[MemoryNote, ...]


ADD = "haversack/memory/add"
UPDATE = "haversack/memory/update"
DELETE = "haversack/memory/delete"
SEARCH = "haversack/memory/search"
LIST = "haversack/memory/list"
EXPORT = "haversack/memory/export"
IMPORT = "haversack/memory/import"

REQUESTS: Mapping[str, tuple[type, type]] = {
    ADD: (MemoryAddParams, MemoryResult),
    UPDATE: (MemoryUpdateParams, MemoryResult),
    DELETE: (MemoryParams, MemoryResult),
    SEARCH: (MemorySearchParams, MemoriesResult),
    LIST: (MemoriesParams, MemoriesResult),
    EXPORT: (MemoriesParams, MemoryExportResult),
    IMPORT: (MemoriesParams, MemoryImportResult),
}
