"""What a supplied item is: the identity of its content and of all of it, its size, and the text that serves it."""

from __future__ import annotations

import json

from haversack.policy.canonical import identity, utf8
from haversack.types import (
    BinaryContent,
    Content,
    DerivedFrom,
    EvidenceRef,
    JsonContent,
    Priority,
    Provenance,
    ReferenceContent,
    ResourceRef,
    SuppliedBy,
    TextContent,
)

Key = tuple[str, str, str]
"""Equal for equal content, whatever is said about it. Bytes are known by their digest, sent along or referred to."""


def entry_identity(content: Content, provenance: Provenance | None, priority: Priority, tokens: int | None) -> str:
    """SHA-256 over source, provenance, priority and cost. Raises `NotCanonical` for text that UTF-8 cannot carry."""
    cost = {"bytes": n_bytes_of(content)}
    if tokens is not None:
        cost["tokens"] = tokens
    source = {"kind": "content", "content": [_source(content)]}
    return identity({"source": source, "provenance": _provenance(provenance), "priority": priority.value, "cost": cost})


def key_of(content: Content) -> Key:
    match content:
        case TextContent():
            return "text", content.text, ""
        case JsonContent():
            return "json", content.text, ""
        case BinaryContent():
            return "data", content.media_type, content.digest
        case ReferenceContent():
            return "data", content.resource.media_type, content.resource.digest


def n_bytes_of(content: Content) -> int:
    match content:
        case TextContent() | JsonContent():
            return len(utf8(content.text))
        case BinaryContent():
            return content.n_bytes
        case ReferenceContent():
            return content.resource.n_bytes


def served_text(content: Content) -> str:
    """Text as it is, JSON with a line for each value, and of data one line that says what it is."""
    match content:
        case TextContent():
            return content.text
        case JsonContent():
            return json.dumps(json.loads(content.text), indent=2, ensure_ascii=False)
        case BinaryContent():
            return _description(content.media_type, content.n_bytes, content.digest)
        case ReferenceContent():
            resource = content.resource
            return _description(resource.media_type, resource.n_bytes, resource.digest, content.alt_text)


def _description(media_type: str, n_bytes: int, digest: str, alt_text: str = "") -> str:
    words = " ".join(alt_text.split())
    return f"{media_type}, {n_bytes:,} bytes, SHA-256 {digest}" + (f": {words}" if words else "")


def _source(content: Content) -> dict[str, object]:
    match content:
        case TextContent():
            return {"kind": "text", "text": content.text}
        case JsonContent():
            value: object = json.loads(content.text)
            return {"kind": "json", "value": value} | ({"schema": content.schema} if content.schema else {})
        case BinaryContent():
            return {
                "kind": "binary",
                "mediaType": content.media_type,
                "byteLength": content.n_bytes,
                "digest": content.digest,
            }
        case ReferenceContent():
            alt: dict[str, object] = {"altText": content.alt_text} if content.alt_text else {}
            resource = content.resource
            return {"kind": "reference", "mediaType": resource.media_type, "resource": _resource(resource)} | alt


def _provenance(provenance: Provenance | None) -> object:
    match provenance:
        case None:
            return None
        case SuppliedBy():
            return {"kind": "supplied", "source": provenance.source}
        case DerivedFrom():
            return {"kind": "derived", "operation": provenance.operation, "sources": list(provenance.sources)}
        case _:
            evidence: dict[str, object] = {"evidence": _evidence(provenance.evidence)} if provenance.evidence else {}
            return {"kind": "retrieved", "source": _resource(provenance.source)} | evidence


def _resource(resource: ResourceRef) -> dict[str, object]:
    return {
        "resourceId": resource.id,
        "mediaType": resource.media_type,
        "byteLength": resource.n_bytes,
        "digest": resource.digest,
    }


def _evidence(evidence: EvidenceRef) -> dict[str, object]:
    schema: dict[str, object] = {"schema": evidence.schema} if evidence.schema else {}
    return {"evidenceId": evidence.id, "kind": evidence.kind, "content": _resource(evidence.content)} | schema
