"""The messages about one selected document; a part of `protocol`."""

from __future__ import annotations

import attrs

from haversack.lsp.places import Range, Uint


@attrs.frozen
class DocumentFocus:
    section_ids: tuple[str, ...] = ()
    range: Range | None = None
    quote: str = ""


@attrs.frozen
class SelectParams:
    document: str
    workspace_folder: str | None = None
    text: str = ""
    focus: DocumentFocus | None = None
    budget_tokens: Uint | None = None
    model: str | None = None
    purpose: str = "agent"
    tenant: str = ""


@attrs.frozen
class DocumentIdentity:
    folder: str
    path: str
    title: str | None
    kind: str
    status: str
    generation: int | None
    lines: int
    characters: int
    gist: str | None


@attrs.frozen
class DocumentSection:
    id: str
    order: int
    kind: str
    heading_path: tuple[str, ...]
    summary: str
    summary_truncated: bool
    range: Range
    focus: bool
