"""Supplied items as a client writes them, and what qualification makes of them."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from haversack.documents import Documents
from haversack.lsp import from_lsp, protocol, wire
from haversack.policy.eligibility import qualify
from haversack.types import EligibilityScope, Request, Selection, Supplied

Json = dict[str, Any]
INVOCATION = "0190bd0c-0000-7000-8000-000000002420"
SCOPE: Json = {
    "scope": {"kind": "invocation", "invocationId": INVOCATION},
    "tenantId": "acme",
    "purpose": "assistant.reply",
    "asOf": "2026-08-01T00:00:00.000Z",
    "maxClassification": "internal",
    "budget": {"maxEntries": 100, "maxBytes": 100_000},
}


def sha(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def resource(**changes: Any) -> Json:
    return {"resourceId": "doc-1", "mediaType": "text/plain", "byteLength": 5, "digest": sha("hello"), **changes}


def evidence(**changes: Any) -> Json:
    return {"evidenceId": "ev-1", "kind": "artifact", "content": resource(), **changes}


def eligibility(**changes: Any) -> Json:
    """Fits `SCOPE` unless changed."""
    return {
        "sourceAuthorization": "authorized",
        "tenantIds": ["acme"],
        "purposes": ["assistant.reply"],
        "classification": "public",
        "freshUntil": "2026-08-01T00:00:00.001Z",
        "promptInjectionTreatment": "allow",
        "precedence": 0,
        "evidence": [evidence()],
        **changes,
    }


def item(ident: str, text: str | None = None, **changes: Any) -> Json:
    """Text of its own unless it has content; eligible."""
    raw: Json = {"id": ident, "title": f"title {ident}", "eligibility": eligibility(), **changes}
    if text is not None or "content" not in raw:
        raw["text"] = f"text of {ident}" if text is None else text
    return raw


def binary(content: bytes, **changes: Any) -> Json:
    return {
        "kind": "binary",
        "mediaType": "image/png",
        "encoding": "base64",
        "data": base64.b64encode(content).decode(),
        "byteLength": len(content),
        "digest": sha(content),
        **changes,
    }


def scope(**changes: Any) -> Json:
    return {**SCOPE, **changes}


def budget(entries: int = 100, n_bytes: int = 100_000, tokens: int | None = None) -> Json:
    return scope(budget={"maxEntries": entries, "maxBytes": n_bytes, "maxTokens": tokens})


def request(items: list[Any], given: Json | None = SCOPE, text: str = "hello", **more: Any) -> Request:
    """As the server reads it from the wire."""
    raw = {"text": text, "supplied": items, "eligibility": given, **more}
    return from_lsp.request(wire.read(raw, protocol.ContextParams), (), Documents(), lambda name: name)


def read_scope(given: Json) -> EligibilityScope:
    found = request([], given).eligibility
    assert found is not None
    return found


def judged(items: list[Any], given: Json | None = SCOPE) -> tuple[tuple[Supplied, ...], Selection | None]:
    """Qualified with words as tokens, so that costs can be counted by eye."""
    asked = request(items, given)
    return qualify(asked.supplied, asked.eligibility, lambda text: len(text.split()))


def reasons(items: list[Any], given: Json | None = SCOPE) -> list[tuple[str, ...]]:
    """Names of each item's reasons."""
    return [tuple(reason.name for reason in each.verdict.reasons) for each in judged(items, given)[0] if each.verdict]
