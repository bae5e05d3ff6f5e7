"""Sealed messages of history on the wire: as they are asked for, and as they come back opened."""

from __future__ import annotations

import attrs

from haversack.lsp.places import Uint


@attrs.frozen
class Envelope:
    version: Uint
    algorithm: str
    key_id: str
    nonce: str
    ciphertext: str


@attrs.frozen
class Sealed:
    ref: str
    session: str
    sequence: Uint
    tokens: Uint
    commitment: str
    envelope: Envelope
    tool_call_ids: tuple[str, ...] = ()
    created_at: str = ""
    model: str = ""


@attrs.frozen
class ToolCall:
    id: str
    name: str
    arguments: str


@attrs.frozen
class OpenedRecord:
    ref: str
    content: str
    salt: str
    tool_calls: tuple[ToolCall, ...] = ()
    name: str = ""


@attrs.frozen
class AbandonParams:
    turn: str


@attrs.frozen
class ContinueParams:
    turn: str
    records: tuple[OpenedRecord, ...]
