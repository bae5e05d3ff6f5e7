"""The messages about inline completion; a part of `protocol`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from haversack.lsp.places import Position, Uint

FIM = "haversack/fim"


@attrs.frozen
class FimParams:
    uri: str
    position: Position
    model: str | None = None
    prefix_tokens: Uint | None = None
    suffix_tokens: Uint | None = None
    context_tokens: Uint | None = None
    reply_tokens: Uint | None = None
    local_only: bool = False
    providers: tuple[str, ...] | None = None
    policy: Mapping[str, Any] | None = None
    tenant: str = ""
    exclude: tuple[str, ...] = ()


@attrs.frozen
class FimPrompt:
    text: str
    stops: tuple[str, ...]
    family: str
    form: str
