"""Supplied items from the wire, each for itself: one that does not fit becomes a row that says where, the rest go on.

Nothing of an item that does not fit is kept, and nothing that is said about it repeats a value of it.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from haversack import types
from haversack.lsp import protocol, wire
from haversack.lsp import supplied_messages as parts
from haversack.policy.canonical import NotCanonical, canonical_json
from haversack.types import Priority, Treatment

# What a name or title may have at most, and a list of tenants, purposes, evidence or sources.
LONGEST_NAME = 4_096
LONGEST_LIST = 256
# The most bytes that may come along in one item; more is better referred to.
MOST_DATA = 16_000_000

T = TypeVar("T")
Lines = Callable[[protocol.Range | None], tuple[int, int] | None]


def items(raw: Sequence[object], lines: Lines) -> tuple[tuple[types.Supplied, ...], tuple[types.Problem, ...]]:
    """One item for each of `raw`, in its order, and a problem for each that does not fit."""
    found: list[types.Supplied] = []
    problems: list[types.Problem] = []
    taken: set[str] = set()
    for place, each in enumerate(raw):
        name = f"supplied[{place}]"
        try:
            item = _item(wire.read(each, protocol.Supplied), name, lines)
            if item.id in taken:
                raise _Fault(f"{name}.id: given twice")
            taken.add(item.id)
        except _Fault as fault:
            item = _malformed(name, str(fault))
        except Exception as error:  # noqa: BLE001 - cattrs raises many kinds; whatever it is, the other items go on
            item = _malformed(name, wire.explain(error, name))
        if item.fault:
            message = f"{item.fault}; the item was left out."
            problems.append(
                types.Problem("supplied", "malformed_item", message, "Correct it; docs/protocol.md has its form.")
            )
        found.append(item)
    return tuple(found), tuple(problems)


def unknown_fields(raw: Sequence[object], most: int) -> tuple[str, ...]:
    """Paths of fields at the top of an item that nobody knows; deeper down such a field makes its item unfit."""

    def of_item(place: int, each: object) -> Iterator[str]:
        return wire.unknown_fields(each, protocol.Supplied, f"params.supplied[{place}]")

    return tuple(islice(chain.from_iterable(of_item(place, each) for place, each in enumerate(raw)), most))


def scope(given: parts.EligibilityScope) -> types.EligibilityScope:
    """Raises `InvalidRequest` for a budget that has room for nothing."""
    if given.budget.max_entries == 0:
        raise types.InvalidRequest(
            "params.eligibility.budget.maxEntries: expected an integer above 0.", "Leave `supplied` out to serve none."
        )
    ids = {
        name: getattr(given.scope, name)
        for name in ("invocation_id", "run_id", "step_id")
        if hasattr(given.scope, name)
    }
    return types.EligibilityScope(
        purpose=given.purpose,
        as_of=given.as_of,
        max_classification=given.max_classification,
        budget=types.SuppliedBudget(given.budget.max_entries, given.budget.max_bytes, given.budget.max_tokens),
        scope=(("kind", given.scope.kind), *((wire.camel(name), value) for name, value in ids.items())),
        tenant=given.tenant_id or "",
    )


class _Fault(ValueError):
    """What is wrong with an item, with its path."""


def _malformed(name: str, fault: str) -> types.Supplied:
    return types.Supplied(id=name, title=name, text="", fault=fault)


def _item(given: protocol.Supplied, name: str, lines: Lines) -> types.Supplied:
    for field, value in (("id", given.id), ("title", given.title), ("path", given.path or "")):
        if len(value) > LONGEST_NAME:
            raise _Fault(f"{name}.{field}: has more than {LONGEST_NAME:,} characters")
    if (given.text is None) == (given.content is None):
        raise _Fault(f"{name}: expected either text or content")
    if given.required and given.priority not in (None, Priority.REQUIRED):
        raise _Fault(f"{name}.priority: speaks against required")
    priority = Priority.REQUIRED if given.required else given.priority or Priority.OPTIONAL
    return types.Supplied(
        id=given.id,
        title=given.title,
        text=given.text or "",
        path=given.path,
        lines=lines(given.range),
        required=priority is Priority.REQUIRED,
        score=given.score,
        content=None if given.content is None else _content(given.content, f"{name}.content"),
        priority=priority,
        tokens=given.tokens,
        provenance=None if given.provenance is None else _provenance(given.provenance, f"{name}.provenance"),
        eligibility=None if given.eligibility is None else _eligibility(given.eligibility, f"{name}.eligibility"),
    )


def _content(given: parts.Content, name: str) -> types.Content:
    match given:
        case parts.TextContent():
            return types.TextContent(given.text)
        case parts.JsonContent():
            try:
                return types.JsonContent(canonical_json(given.value), given.schema or "")
            except NotCanonical as error:
                raise _Fault(f"{name}.value: {error}") from None
        case parts.BinaryContent():
            _check_data(given, name)
            return types.BinaryContent(given.media_type, given.byte_length, given.digest)
        case parts.ReferenceContent():
            if given.media_type != given.resource.media_type:
                raise _Fault(f"{name}.mediaType: is not that of the resource")
            return types.ReferenceContent(_resource(given.resource), given.alt_text)


def _check_data(given: parts.BinaryContent, name: str) -> None:
    """Size before content: data of another length than stated is never decoded."""
    if given.byte_length > MOST_DATA:
        raise _Fault(f"{name}.byteLength: more than {MOST_DATA:,}")
    if len(given.data) != 4 * -(-given.byte_length // 3):
        raise _Fault(f"{name}.data: is not as long as byteLength says")
    try:
        data = binascii.a2b_base64(given.data)
    except ValueError:
        raise _Fault(f"{name}.data: is not base64") from None
    if len(data) != given.byte_length or binascii.b2a_base64(data, newline=False).decode("ascii") != given.data:
        raise _Fault(f"{name}.data: is not the base64 of byteLength bytes")
    if hashlib.sha256(data).hexdigest() != given.digest:
        raise _Fault(f"{name}.digest: is not that of the data")


def _provenance(given: parts.Provenance, name: str) -> types.Provenance:
    match given:
        case parts.SuppliedBy():
            return types.SuppliedBy(given.source)
        case parts.DerivedFrom():
            return types.DerivedFrom(given.operation, _distinct(given.sources, f"{name}.sources", least=1))
        case parts.RetrievedFrom():
            evidence = None if given.evidence is None else _evidence(given.evidence)
            return types.RetrievedFrom(_resource(given.source), evidence)


def _eligibility(given: parts.Eligibility, name: str) -> types.Eligibility:
    redacted = given.redacted
    if redacted is not None and given.prompt_injection_treatment is not Treatment.REDACT:
        raise _Fault(f"{name}.redacted: only the treatment redact has a replacement")
    return types.Eligibility(
        authorization=given.source_authorization,
        tenants=_distinct(given.tenant_ids, f"{name}.tenantIds", least=0),
        purposes=_distinct(given.purposes, f"{name}.purposes", least=1),
        classification=given.classification,
        fresh_until=given.fresh_until,
        treatment=given.prompt_injection_treatment,
        precedence=given.precedence,
        evidence=_distinct(tuple(map(_evidence, given.evidence)), f"{name}.evidence", least=1),
        redacted=None if redacted is None else _replacement(redacted, f"{name}.redacted"),
    )


def _replacement(given: parts.Replacement, name: str) -> types.Replacement:
    return types.Replacement(
        content=_content(given.content, f"{name}.content"),
        priority=given.priority,
        provenance=None if given.provenance is None else _provenance(given.provenance, f"{name}.provenance"),
        tokens=given.tokens,
    )


def _evidence(given: parts.EvidenceRef) -> types.EvidenceRef:
    return types.EvidenceRef(given.evidence_id, given.kind, _resource(given.content), given.schema or "")


def _resource(given: parts.ResourceRef) -> types.ResourceRef:
    return types.ResourceRef(given.resource_id, given.media_type, given.byte_length, given.digest)


def _distinct(values: tuple[T, ...], name: str, least: int) -> tuple[T, ...]:
    if not least <= len(values) <= LONGEST_LIST:
        raise _Fault(f"{name}: expected {least} to {LONGEST_LIST} of them")
    if len(values) > 1 and len(set(values)) < len(values):
        raise _Fault(f"{name}: one is given twice")
    return values
