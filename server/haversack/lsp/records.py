"""The messages about records of answers; a part of `protocol`."""

from __future__ import annotations

import attrs

from haversack.lsp.places import Range, Uint


@attrs.frozen
class RecordsParams:
    workspace_folder: str | None = None
    limit: Uint = Uint(20)


@attrs.frozen
class RecordParams:
    id: str
    workspace_folder: str | None = None
    tenant: str = ""


@attrs.frozen
class RecordSummary:
    id: str
    time: float
    hash: str
    intact: bool
    model: str
    recipe: str
    tokens: int
    included: int
    shortened: int
    redacted: int
    excluded: int
    withheld: int


@attrs.frozen
class RecordsResult:
    records: tuple[RecordSummary, ...]


@attrs.frozen
class RecordResult:
    summary: RecordSummary
    document: str


@attrs.frozen
class RecordEntry:
    folder: str
    path: str | None
    range: Range | None
    kind: str
    state: str


@attrs.frozen
class RecordVerifyResult:
    id: str
    hash: str
    verified: bool
    faults: tuple[str, ...]
    entries: tuple[RecordEntry, ...]
