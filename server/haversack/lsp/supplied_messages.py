"""The parts of a supplied item, and what became of it, as they look on the wire.

Objects here are closed: a field that nobody knows makes them unfit, because a misspelt condition must not be a
condition that is not there. What must match a pattern or come from a set has a type of its own, so that whatever does
not fit is refused with its path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NewType

import attrs

from haversack.types import Authorization, Classification, Priority, Treatment

SafeUint = NewType("SafeUint", int)
"""0 to 2^53 - 1: what every JSON reader holds exactly."""

Identifier = NewType("Identifier", str)
MediaType = NewType("MediaType", str)
Digest = NewType("Digest", str)
Instant = NewType("Instant", str)
TenantId = NewType("TenantId", str)
Purpose = NewType("Purpose", str)
Uuid = NewType("Uuid", str)
Operation = NewType("Operation", str)
AltText = NewType("AltText", str)

MAX_SAFE_UINT = 2**53 - 1

# Names have no slash, so no path and no address can ride along in one.
PATTERNS: Mapping[Any, tuple[re.Pattern[str], str]] = {
    Identifier: (re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}"), "1 to 255 letters, digits and . _ : -"),
    MediaType: (re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"), "a media type"),
    Digest: (re.compile(r"[0-9a-f]{64}"), "SHA-256 in 64 lowercase hexadecimal digits"),
    Instant: (
        re.compile(r"[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}:){2}[0-9]{2}\.[0-9]{3}Z"),
        "UTC as 2026-08-01T00:00:00.000Z",
    ),
    TenantId: (re.compile(r"[!-~]{1,255}"), "1 to 255 printable ASCII characters without blanks"),
    Purpose: (re.compile(r"[a-z][a-z0-9._-]{0,127}"), "a letter, then up to 127 of a-z 0-9 . _ -"),
    Uuid: (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "a UUID in lowercase"),
    Operation: (re.compile(r"[ -~]{1,255}"), "1 to 255 printable ASCII characters"),
    AltText: (re.compile(r"(?s:.{0,4096})"), "at most 4,096 characters"),
}


@attrs.frozen
class ResourceRef:
    resource_id: Identifier
    media_type: MediaType
    byte_length: SafeUint
    digest: Digest


@attrs.frozen
class EvidenceRef:
    evidence_id: Identifier
    kind: Literal[
        "artifact",
        "checkpoint",
        "evaluation",
        "event-payload",
        "execution-receipt",
        "other",
        "tool-arguments",
        "tool-result",
    ]
    content: ResourceRef
    schema: Identifier | None = None


@attrs.frozen
class TextContent:
    kind: Literal["text"]
    text: str


@attrs.frozen
class JsonContent:
    kind: Literal["json"]
    value: Any
    schema: Identifier | None = None


@attrs.frozen
class BinaryContent:
    kind: Literal["binary"]
    media_type: MediaType
    encoding: Literal["base64"]
    data: str
    byte_length: SafeUint
    digest: Digest


@attrs.frozen
class ReferenceContent:
    kind: Literal["reference"]
    media_type: MediaType
    resource: ResourceRef
    alt_text: AltText = AltText("")


Content = TextContent | JsonContent | BinaryContent | ReferenceContent


@attrs.frozen
class SuppliedBy:
    kind: Literal["supplied"]
    source: Literal["application", "system", "user"]


@attrs.frozen
class DerivedFrom:
    kind: Literal["derived"]
    operation: Operation
    sources: tuple[Digest, ...]


@attrs.frozen
class RetrievedFrom:
    kind: Literal["retrieved"]
    source: ResourceRef
    evidence: EvidenceRef | None = None


Provenance = SuppliedBy | DerivedFrom | RetrievedFrom


@attrs.frozen
class Replacement:
    content: Content
    priority: Priority | None = None
    provenance: Provenance | None = None
    tokens: SafeUint | None = None


@attrs.frozen
class Eligibility:
    source_authorization: Authorization
    tenant_ids: tuple[TenantId, ...]
    purposes: tuple[Purpose, ...]
    classification: Classification
    fresh_until: Instant
    prompt_injection_treatment: Treatment
    precedence: SafeUint
    evidence: tuple[EvidenceRef, ...]
    redacted: Replacement | None = None


@attrs.frozen
class InvocationScope:
    kind: Literal["invocation"]
    invocation_id: Uuid


@attrs.frozen
class RunScope:
    kind: Literal["run"]
    invocation_id: Uuid
    run_id: Uuid


@attrs.frozen
class StepScope:
    kind: Literal["step"]
    invocation_id: Uuid
    run_id: Uuid
    step_id: Uuid


Scope = InvocationScope | RunScope | StepScope


@attrs.frozen
class SuppliedBudget:
    max_entries: SafeUint
    max_bytes: SafeUint
    max_tokens: SafeUint | None = None


@attrs.frozen
class EligibilityScope:
    scope: Scope
    purpose: Purpose
    as_of: Instant
    max_classification: Classification
    budget: SuppliedBudget
    tenant_id: TenantId | None = None


# --- results ----------------------------------------------------------------------------------------------------


@attrs.frozen
class EligibilityFacts:
    source_authorization: str
    tenant_ids: tuple[str, ...]
    purposes: tuple[str, ...]
    classification: str
    fresh_until: str
    prompt_injection_treatment: str
    precedence: int
    evidence: tuple[str, ...]


@attrs.frozen
class Verdict:
    place: int
    priority: str
    entry: str
    selected: str
    eligibility: EligibilityFacts | None


@attrs.frozen
class Selection:
    identity: str
    entries: int
    bytes: int
    tokens: int | None
