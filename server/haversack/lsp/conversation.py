"""The messages about conversations: history in our own form and in those of providers; a part of `protocol`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from haversack.lsp.places import Uint
from haversack.lsp.sealed_messages import Sealed, ToolCall


@attrs.frozen
class Image:
    reference: str
    tokens: Uint


@attrs.frozen
class HistoryMessage:
    role: str
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    pinned: bool = False
    origins: tuple[str, ...] = ()
    id: str = ""
    summary_of: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    sealed: Sealed | None = None


@attrs.frozen
class Problem:
    stage: str
    code: str
    message: str
    remedy: str


@attrs.frozen
class PromptMessage:
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str
    name: str
    id: str
    summary_of: tuple[str, ...]
    origins: tuple[str, ...]
    images: tuple[Image, ...]


@attrs.frozen
class Summary:
    by: str
    messages: tuple[int, ...]
    ids: tuple[str, ...]
    origins: tuple[str, ...]
    tokens_before: int
    tokens_after: int


@attrs.frozen
class HistoryReport:
    tier: str
    tokens_before: int
    tokens_after: int
    warning: bool
    note: str
    state: str
    used: int
    percent: float
    summaries: tuple[Summary, ...]


@attrs.frozen
class ProviderMessages:
    """A conversation as a provider's API has it."""

    format: str
    messages: tuple[Any, ...]
    system: Any = None


@attrs.frozen
class CompactParams:
    history: tuple[HistoryMessage, ...] = ()
    provider_history: ProviderMessages | None = None
    model: str | None = None
    budget_tokens: Uint | None = None
    conversation: str = ""
    policy: Mapping[str, Any] | None = None
    local_only: bool = False


@attrs.frozen
class CompactResult:
    messages: tuple[PromptMessage, ...]
    provider_messages: ProviderMessages | None
    history: HistoryReport
    target: int
    problems: tuple[Problem, ...]


COMPACT = "haversack/compact"

REQUESTS: Mapping[str, tuple[type, type]] = {COMPACT: (CompactParams, CompactResult)}
