"""Haversack's own messages, as they look on the wire. `docs/protocol.md` describes the same; a test compares the two.

Attributes are written in snake case here and travel in camel case; `wire` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from haversack.lsp import conversation, memories
from haversack.lsp.conversation import (
    HistoryMessage,
    HistoryReport,
    Image,
    Problem,
    PromptMessage,
    ProviderMessages,
)
from haversack.lsp.fim import FIM, FimParams, FimPrompt
from haversack.lsp.places import MAX_UINT, Position, Range, Share, Uint
from haversack.lsp.records import RecordParams, RecordResult, RecordsParams, RecordsResult, RecordVerifyResult
from haversack.lsp.routing import Cost, FailedModel, Route, Skip
from haversack.lsp.sealed_messages import AbandonParams, ContinueParams, ToolCall
from haversack.lsp.selection import DocumentFocus, DocumentIdentity, DocumentSection, SelectParams
from haversack.lsp.supplied_messages import (
    Content,
    Eligibility,
    EligibilityScope,
    Provenance,
    SafeUint,
    Selection,
    Verdict,
)
from haversack.types import Priority

__all__ = ["MAX_UINT", "ContinueParams", "DocumentFocus", "DocumentIdentity", "DocumentSection", "Position"]
__all__ += ["Range", "SelectParams", "ToolCall"]
__all__ += ["Cost", "FailedModel", "Route", "Share", "Skip", "Uint"]
__all__ += ["FIM", "FimParams", "FimPrompt"]
__all__ += ["HistoryMessage", "Image", "Problem", "PromptMessage", "ProviderMessages"]


# --- parameters -------------------------------------------------------------------------------------------------


@attrs.frozen
class ActiveDocument:
    uri: str
    position: Position | None = None
    selection: Range | None = None
    visible_ranges: tuple[Range, ...] = ()


@attrs.frozen
class Mention:
    value: str
    kind: str | None = None
    range: Range | None = None


@attrs.frozen
class Supplied:
    id: str
    title: str
    text: str | None = None
    path: str | None = None
    range: Range | None = None
    required: bool = False
    score: Share = Share(0.5)
    content: Content | None = None
    priority: Priority | None = None
    tokens: SafeUint | None = None
    provenance: Provenance | None = None
    eligibility: Eligibility | None = None


@attrs.frozen
class ContextParams:
    text: str
    workspace_folder: str | None = None
    active_document: ActiveDocument | None = None
    mentions: tuple[Mention, ...] = ()
    history: tuple[HistoryMessage, ...] = ()
    provider_history: ProviderMessages | None = None
    model: str | None = None
    budget_tokens: Uint | None = None
    supplied: tuple[Any, ...] = ()  # `Supplied`, read one by one: one that does not fit costs itself alone
    eligibility: EligibilityScope | None = None
    recipe: str = "chat"
    tools_tokens: Uint = Uint(0)
    policy: Mapping[str, Any] | None = None
    tenant: str = ""
    conversation: str = ""
    intent: str | None = None
    effort: str | None = None
    needs: tuple[str, ...] = ()
    local_only: bool = False
    providers: tuple[str, ...] | None = None
    failed: tuple[FailedModel, ...] = ()
    exclude: tuple[str, ...] = ()


@attrs.frozen
class WorkspaceFolder:
    uri: str
    name: str = ""


@attrs.frozen
class InitializeParams:
    """What of the standard's parameters is used. Capabilities stay plain: an unknown one must never stop a start."""

    capabilities: Mapping[str, Any]
    process_id: int | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None
    initialization_options: Any = None


@attrs.frozen
class IndexParams:
    workspace_folder: str | None = None


@attrs.frozen
class Diagnostic:
    range: Range
    message: str
    severity: Uint = Uint(1)
    source: str | None = None
    code: int | str | None = None


@attrs.frozen
class DiagnosticsParams:
    uri: str
    diagnostics: tuple[Diagnostic, ...]


# --- results ----------------------------------------------------------------------------------------------------


@attrs.frozen
class Prompt:
    messages: tuple[PromptMessage, ...]
    tokens: int
    stable_chars: int
    provider_messages: ProviderMessages | None


@attrs.frozen
class Block:
    title: str
    folder: str
    path: str | None
    uri: str | None
    range: Range | None
    ranges: tuple[Range, ...]
    kind: str
    detail: str
    language: str
    tokens: int
    score: float
    items: tuple[str, ...]
    text: str


@attrs.frozen
class Part:
    name: str
    value: float


@attrs.frozen
class ManifestItem:
    id: str
    source: str
    kind: str
    title: str
    folder: str
    path: str | None
    range: Range | None
    required: bool
    restricted: bool
    outcome: str
    detail: str | None
    reasons: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    score: float
    parts: tuple[Part, ...]
    why: str
    content_hash: str
    flags: tuple[str, ...]
    note: str
    verdict: Verdict | None


@attrs.frozen
class Timing:
    name: str
    status: str
    milliseconds: float
    deadline: float
    candidates: int


@attrs.frozen
class TokenUse:
    window: int
    window_source: str
    reply_reserve: int
    system: int
    tools: int
    history: int
    question: int
    context: int
    context_budget: int
    total: int
    counted: str
    counter: str


@attrs.frozen
class Prefix:
    known: bool
    shared: int
    total: int
    share: float


@attrs.frozen
class Manifest:
    items: tuple[ManifestItem, ...]
    timings: tuple[Timing, ...]
    tokens: TokenUse
    problems: tuple[Problem, ...]
    classification: Any
    index: Any
    hash: str
    prefix: Prefix | None
    selection: Selection | None


@attrs.frozen
class ContextResult:
    status: str
    prompt: Prompt
    blocks: tuple[Block, ...]
    route: Route
    manifest: Manifest
    history: HistoryReport
    version_hash: str
    problems: tuple[Problem, ...]
    record_id: str | None
    to_decrypt: tuple[HistoryMessage, ...]
    turn: str
    expires_in: float


@attrs.frozen
class SelectResult(ContextResult):
    identity: DocumentIdentity
    sections: tuple[DocumentSection, ...]
    focus_axis: DocumentFocus | None
    truncated: bool


@attrs.frozen
class FolderStatus:
    name: str
    uri: str
    state: str
    generation: int
    files: int
    chunks: int
    symbols: int
    vectors: int
    done: int
    total: int
    skipped: Any
    embedder: str
    problems: tuple[str, ...]


@attrs.frozen
class IndexStatusResult:
    state: str
    generation: int
    files: int
    chunks: int
    symbols: int
    vectors: int
    done: int
    total: int
    skipped: Any
    folders: tuple[FolderStatus, ...]


@attrs.frozen
class ErrorData:
    code: str
    remedy: str
    details: Any


@attrs.frozen
class FimResult:
    prompt: FimPrompt
    prefix: str
    suffix: str
    imports: str
    snippets: tuple[Block, ...]
    language: str
    route: Route
    manifest: Manifest
    problems: tuple[Problem, ...]


# --- the methods ------------------------------------------------------------------------------------------------

CONTEXT = "haversack/context"
CONTINUE = "haversack/continue"
ABANDON = "haversack/abandon"
PREVIEW = "haversack/preview"
SELECT = "haversack/select"
INDEX_STATUS = "haversack/index/status"
INDEX_REBUILD = "haversack/index/rebuild"
RECORDS_LIST = "haversack/records/list"
RECORDS_GET = "haversack/records/get"
RECORDS_VERIFY = "haversack/records/verify"
DIAGNOSTICS = "haversack/diagnostics"

REQUESTS: Mapping[str, tuple[type, type]] = {
    CONTEXT: (ContextParams, ContextResult),
    CONTINUE: (ContinueParams, ContextResult),
    PREVIEW: (ContextParams, ContextResult),
    SELECT: (SelectParams, SelectResult),
    FIM: (FimParams, FimResult),
    INDEX_STATUS: (IndexParams, IndexStatusResult),
    INDEX_REBUILD: (IndexParams, IndexStatusResult),
    RECORDS_LIST: (RecordsParams, RecordsResult),
    RECORDS_GET: (RecordParams, RecordResult),
    RECORDS_VERIFY: (RecordParams, RecordVerifyResult),
    **memories.REQUESTS,
    **conversation.REQUESTS,
}
"""Request method to the classes of its parameters and its result."""

NOTIFICATIONS: Mapping[str, type] = {ABANDON: AbandonParams, DIAGNOSTICS: DiagnosticsParams}


def params_class(method: str) -> type | None:
    """The class here that the parameters of `method` are read as; None for what lsprotocol reads."""
    if method == "initialize":
        return InitializeParams
    return REQUESTS[method][0] if method in REQUESTS else NOTIFICATIONS.get(method)
