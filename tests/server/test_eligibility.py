"""Supplied items are judged by what their owners say: every reason, every order, every budget."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from supplying import (
    INVOCATION,
    SCOPE,
    Json,
    binary,
    budget,
    eligibility,
    evidence,
    item,
    judged,
    read_scope,
    reasons,
    request,
    resource,
    scope,
    sha,
)

from haversack.lsp import wire
from haversack.policy.canonical import MAX_DEPTH, NotCanonical, canonical_json, digest_of
from haversack.policy.eligibility import qualify
from haversack.types import HaversackError, InvalidRequest, Reason, Supplied, Verdict

RUN, STEP = INVOCATION.replace("2420", "2421"), INVOCATION.replace("2420", "2422")


def verdicts(items: list[Any], given: Json | None = SCOPE) -> list[Verdict]:
    return [each.verdict for each in judged(items, given)[0] if each.verdict]


def served(items: list[Any], given: Json | None = SCOPE) -> list[str]:
    """Ids of the items that may be served."""
    return [each.id for each in judged(items, given)[0] if each.verdict and each.verdict.selected]


def entry(raw: Json) -> str:
    return verdicts([raw])[0].entry


def fault(raw: object) -> str:
    return request([raw]).supplied[0].fault


# --- the scope, and the shapes of an item -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        (
            {"kind": "invocation", "invocationId": INVOCATION},
            (("kind", "invocation"), ("invocationId", INVOCATION)),
        ),
        (
            {"kind": "run", "invocationId": INVOCATION, "runId": RUN},
            (("kind", "run"), ("invocationId", INVOCATION), ("runId", RUN)),
        ),
        (
            {"kind": "step", "invocationId": INVOCATION, "runId": RUN, "stepId": STEP},
            (("kind", "step"), ("invocationId", INVOCATION), ("runId", RUN), ("stepId", STEP)),
        ),
    ],
)
def test_a_scope_is_an_invocation_a_run_or_a_step(given: Json, pairs: tuple[tuple[str, str], ...]) -> None:
    """Each with its ids, and each gives the selection another identity."""
    assert read_scope(scope(scope=given)).scope == pairs
    selection = judged([item("a")], scope(scope=given))[1]
    other = judged([item("a")], scope(scope={**given, "invocationId": STEP}))[1]
    assert selection is not None
    assert other is not None
    assert selection.identity != other.identity


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"scope": {"kind": "planet", "invocationId": INVOCATION}}, "params.eligibility.scope: expected kind"),
        ({"scope": {"kind": "invocation", "invocationId": INVOCATION.upper()}}, "scope.invocationId: expected a UUID"),
        ({"scope": {"kind": "run", "invocationId": INVOCATION}}, "params.eligibility.scope.runId: missing"),
        ({"scope": {"kind": "invocation", "invocationId": INVOCATION, "runId": RUN}}, "scope: has a field"),
        ({"extra": 1}, "params.eligibility: has a field"),
        ({"purpose": "Reply"}, "params.eligibility.purpose"),
        ({"purpose": "a" * 129}, "params.eligibility.purpose"),
        ({"asOf": "2026-08-01T00:00:00Z"}, "params.eligibility.asOf"),
        ({"asOf": "2026-08-01T00:00:00.000+00:00"}, "params.eligibility.asOf"),
        ({"asOf": "2026-02-30T00:00:00.000Z"}, "params.eligibility.asOf"),
        ({"asOf": "2026-08-01T24:00:00.000Z"}, "params.eligibility.asOf"),
        ({"tenantId": "two words"}, "params.eligibility.tenantId"),
        ({"tenantId": ""}, "params.eligibility.tenantId"),
        ({"maxClassification": "secret"}, "params.eligibility.maxClassification: expected public or"),
        ({"budget": {"maxEntries": -1, "maxBytes": 0}}, "params.eligibility.budget.maxEntries"),
        ({"budget": {"maxEntries": 2**53, "maxBytes": 0}}, "params.eligibility.budget.maxEntries"),
        ({"budget": {"maxEntries": 1, "maxBytes": 1.5}}, "params.eligibility.budget.maxBytes"),
        ({"budget": {"maxEntries": 1, "maxBytes": 1, "maxTokens": True}}, "params.eligibility.budget.maxTokens"),
    ],
)
def test_a_scope_that_does_not_fit_refuses_the_request(changes: Json, place: str) -> None:
    """The caller's own condition is wrong: nothing can be judged by it."""
    with pytest.raises(Exception) as refusal:
        request([], scope(**changes))
    assert place in wire.explain(refusal.value)


def test_a_budget_for_nothing_refuses_the_request() -> None:
    """Entries are above 0; bytes and tokens may be 0."""
    with pytest.raises(InvalidRequest, match=r"params\.eligibility\.budget\.maxEntries"):
        request([], budget(entries=0))
    assert reasons([item("a"), item("b", text="")], budget(n_bytes=0)) == [("SUPPLIED_BUDGET",), ()]


def test_text_json_data_and_references_are_served() -> None:
    """Text as it is, JSON by sorted keys, of data and references one line without a byte of them."""
    raw = [
        item("text", "two\nlines"),
        item("json", content={"kind": "json", "value": {"b": [1.0, None], "a": "é"}, "schema": "note.v1"}),
        item("binary", content=binary(b"PNG secret")),
        item(
            "reference",
            content={
                "kind": "reference",
                "mediaType": "text/plain",
                "resource": resource(),
                "altText": "a\n  greeting",
            },
        ),
        item("same as text", content={"kind": "text", "text": "more"}),
    ]
    assert [each.text for each in judged(raw)[0]] == [
        "two\nlines",
        '{\n  "a": "é",\n  "b": [\n    1,\n    null\n  ]\n}',
        f"image/png, 10 bytes, SHA-256 {sha('PNG secret')}",
        f"text/plain, 5 bytes, SHA-256 {sha('hello')}: a greeting",
        "more",
    ]


def test_bytes_are_those_of_the_content() -> None:
    """UTF-8 of text, canonical JSON, decoded data, what a reference refers to."""
    contents: list[tuple[Json, int]] = [
        ({"kind": "text", "text": "é€"}, 5),
        ({"kind": "json", "value": {"b": 1.0, "a": []}}, len('{"a":[],"b":1}')),
        (binary(b"12345"), 5),
        ({"kind": "reference", "mediaType": "text/plain", "resource": resource(byteLength=7_000)}, 7_000),
    ]
    for content, n_bytes in contents:
        selection = judged([item("a", content=content)])[1]
        assert selection is not None
        assert (selection.n_entries, selection.n_bytes) == (1, n_bytes)


PROVENANCES: list[Json] = [
    {"kind": "supplied", "source": "application"},
    {"kind": "supplied", "source": "user"},
    {"kind": "derived", "operation": "summarize", "sources": [sha("a"), sha("b")]},
    {"kind": "derived", "operation": "summarize", "sources": [sha("b"), sha("a")]},
    {"kind": "retrieved", "source": resource()},
    {"kind": "retrieved", "source": resource(), "evidence": evidence()},
    {"kind": "retrieved", "source": resource(), "evidence": evidence(kind="other", schema="s")},
]


def test_each_provenance_is_another_entry() -> None:
    """The same text from another source is not the same entry."""
    found = [entry(item("a", "x", provenance=each)) for each in [None, *PROVENANCES]]
    assert len(set(found)) == len(found)


# Every way to be malformed, with the place that the row must name.
MALFORMED: list[tuple[Any, str]] = [
    (None, "supplied[0]: expected an object"),
    ([], "supplied[0]: expected an object"),
    ({"id": "a", "title": "t"}, "supplied[0]: expected either text or content"),
    ({"id": 5, "title": "t", "text": "x"}, "supplied[0].id: expected a string"),
    ({"title": "t", "text": "x"}, "supplied[0].id: missing"),
    ({"id": "a" * 5_000, "title": "t", "text": "x"}, "supplied[0].id: has more"),
    (item("a", score=2), "supplied[0].score: expected"),
    (item("a", tokens=-1), "supplied[0].tokens: expected"),
    (item("a", tokens=2**53), "supplied[0].tokens: expected"),
    (item("a", priority="urgent"), "supplied[0].priority: expected required or preferred or optional"),
    (item("a", priority="optional", required=True), "supplied[0].priority: speaks against required"),
    (item("a", content={"kind": "text", "text": "x"}, text="x"), "supplied[0]: expected either text or content"),
    (item("a", content={"kind": "video"}), "supplied[0].content: expected kind text or json"),
    (item("a", content={"kind": ["text"]}), "supplied[0].content: expected kind"),
    (item("a", content={"kind": "text", "text": "x", "path": "/etc"}), "supplied[0].content: has a field"),
    (item("a", content={"kind": "json"}), "supplied[0].content.value: missing"),
    (item("a", content={"kind": "json", "value": float("inf")}), "supplied[0].content.value: has a number"),
    (item("a", content=binary(b"x", digest=sha("y"))), "supplied[0].content.digest: is not that of the data"),
    (item("a", content=binary(b"x", byteLength=4)), "supplied[0].content.data: is not as long"),
    (item("a", content=binary(b"x", byteLength=2)), "supplied[0].content.data: is not the base64"),
    (item("a", content=binary(b"x", data="eB==")), "supplied[0].content.data: is not the base64"),
    (item("a", content=binary(b"x", data="!@#$")), "supplied[0].content.data: is not"),
    (item("a", content=binary(b"x", data="éééé")), "supplied[0].content.data: is not base64"),
    (item("a", content=binary(b"x", mediaType="PNG")), "supplied[0].content.mediaType: expected a media type"),
    (item("a", content=binary(b"x", encoding="hex")), "supplied[0].content.encoding: expected base64"),
    (item("a", content=binary(b"x", byteLength=2**40)), "supplied[0].content.byteLength: more than"),
    (
        item("a", content={"kind": "reference", "mediaType": "text/html", "resource": resource()}),
        "supplied[0].content.mediaType: is not that of the resource",
    ),
    (
        item("a", content={"kind": "reference", "mediaType": "text/plain", "resource": resource(url="http://x")}),
        "supplied[0].content.resource: has a field",
    ),
    (item("a", provenance={"kind": "supplied", "source": "me"}), "supplied[0].provenance.source: expected"),
    (
        item("a", provenance={"kind": "derived", "operation": "", "sources": [sha("a")]}),
        "supplied[0].provenance.operation: expected",
    ),
    (
        item("a", provenance={"kind": "derived", "operation": "x", "sources": []}),
        "supplied[0].provenance.sources: expected 1",
    ),
    (
        item("a", provenance={"kind": "derived", "operation": "x", "sources": [sha("a")] * 2}),
        "supplied[0].provenance.sources: one is given twice",
    ),
    (
        item("a", provenance={"kind": "retrieved", "source": resource(resourceId="../etc/passwd")}),
        "supplied[0].provenance.source.resourceId: expected",
    ),
    (item("a", eligibility=[]), "supplied[0].eligibility: expected an object"),
    (item("a", eligibility=eligibility(freshUntil=7)), "supplied[0].eligibility.freshUntil: expected UTC"),
    (item("a", eligibility=eligibility(freshUnti="x")), "supplied[0].eligibility: has a field"),
    (item("a", eligibility=eligibility(purposes=[])), "supplied[0].eligibility.purposes: expected 1"),
    (item("a", eligibility=eligibility(tenantIds=["a", "a"])), "supplied[0].eligibility.tenantIds: one is given twice"),
    (item("a", eligibility=eligibility(tenantIds=["a", 5])), "supplied[0].eligibility.tenantIds[1]: expected"),
    (item("a", eligibility=eligibility(precedence=-1)), "supplied[0].eligibility.precedence: expected"),
    (item("a", eligibility=eligibility(evidence=[])), "supplied[0].eligibility.evidence: expected 1"),
    (item("a", eligibility=eligibility(evidence=[evidence()] * 2)), "supplied[0].eligibility.evidence: one is given"),
    (
        item("a", eligibility=eligibility(evidence=[evidence(kind="rumour")])),
        "supplied[0].eligibility.evidence[0].kind: expected artifact",
    ),
    (
        item("a", eligibility=eligibility(redacted={"content": {"kind": "text", "text": "x"}})),
        "supplied[0].eligibility.redacted: only the treatment redact",
    ),
]


@pytest.mark.parametrize(("raw", "place"), MALFORMED, ids=[place for _, place in MALFORMED])
def test_an_item_that_does_not_fit_says_where(raw: Any, place: str) -> None:
    """By its path, with a row and a problem of its own, and the items around it go on."""
    asked = request([raw, item("good")])
    assert asked.supplied[0].fault.startswith(place)
    found = qualify(asked.supplied, asked.eligibility, len)[0]
    assert [each.verdict.reasons if each.verdict else None for each in found] == [(Reason.MALFORMED,), ()]
    assert [problem.code for problem in asked.problems] == ["malformed_item"]
    assert asked.problems[0].message.startswith(place)


def test_what_does_not_fit_is_not_repeated() -> None:
    """Neither its texts nor its wrong values come back, whatever is wrong with it."""
    canary = "canary-5e1f"
    for raw in (
        {"id": canary, "title": canary, "text": [canary]},
        {"id": "a", "title": canary, "text": canary, "score": canary},
        item("a", canary, priority=canary, provenance={"kind": canary}),
        item("a", content=binary(canary.encode(), digest=sha("other"))),
        item("a", content={"kind": "json", "value": {canary: [canary]}, canary: canary}),
        item("a", canary, eligibility=eligibility(purposes=[canary.upper()])),
    ):
        asked = request([raw])
        found = qualify(asked.supplied, asked.eligibility, len)
        assert found[0][0].fault
        assert canary not in repr((asked.supplied, asked.problems, found)).lower()


# --- identity ---------------------------------------------------------------------------------------------------


def test_identity_is_over_source_provenance_priority_and_cost() -> None:
    """SHA-256 of canonical JSON that anybody can write down again; id, title and score are not in it."""
    provenance = {"kind": "supplied", "source": "application"}
    raw = item("a", "Receipts are authoritative.", provenance=provenance, required=True, tokens=5)
    written = {
        "source": {"kind": "content", "content": [{"kind": "text", "text": "Receipts are authoritative."}]},
        "provenance": provenance,
        "priority": "required",
        "cost": {"bytes": 27, "tokens": 5},
    }
    assert entry(raw) == digest_of(canonical_json(written))
    assert entry({**raw, "id": "b", "title": "other", "score": 0.1}) == entry(raw)
    for changed in ({"text": "Receipts."}, {"provenance": None}, {"required": False}, {"tokens": 6}):
        assert entry({**raw, **changed}) != entry(raw)


def test_selection_identity_is_over_scope_budget_usage_and_entries() -> None:
    """In that canonical form, entries in their selected order; refused items are not in it."""
    items = [item("a"), item("b", required=True), item("c", eligibility=eligibility(tenantIds=["other"]))]
    given, selection = judged(items)
    entries = [each.verdict.entry for each in given if each.verdict]
    usage = {"entries": 2, "bytes": 18, "tokens": 6}
    written = {
        "scope": SCOPE["scope"],
        "budget": SCOPE["budget"],
        "usage": usage,
        "entries": [entries[1], entries[0]],
    }
    assert selection is not None
    assert selection.identity == digest_of(canonical_json(written))
    assert (selection.n_entries, selection.n_bytes, selection.tokens) == (2, 18, 6)
    assert judged(items[:2])[1] == selection


def test_tokens_of_a_selection_are_known_only_with_all_of_them() -> None:
    """Data without a stated cost leaves the sum open."""
    selection = judged([item("a"), item("b", content=binary(b"x"))])[1]
    assert selection is not None
    assert selection.tokens is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ([1, 1.0, 1e0, -0.0, 1e21, 0.1, 1e-7], "[1,1,1,0,1000000000000000000000,0.1,1e-07]"),
        (2**64 + 1, "18446744073709551617"),
        ("e\u0301\u00e9\u2028", '"e\u0301\u00e9\u2028"'),
        ([[], {}], "[[],{}]"),
    ],
)
def test_equal_values_have_one_spelling(value: object, text: str) -> None:
    """Keys are sorted, arrays are not; numbers are spelled by value; letters are not recomposed."""
    assert canonical_json(value) == text
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("-inf")], "\ud800", {"\udfff": 1}, {1: 2}, {"a": object()}, 1 << 5_000, b"x"],
    ids=["nan", "infinity", "half a character", "half in a key", "number key", "object", "long integer", "bytes"],
)
def test_values_without_a_spelling_are_refused(value: object) -> None:
    """Identity is never a guess."""
    with pytest.raises(NotCanonical):
        canonical_json(value)


def test_depth_is_limited_long_before_the_stack_is() -> None:
    """One level more than allowed is refused, thousands of levels too."""
    nested: Any = 1
    for _ in range(MAX_DEPTH):
        nested = [nested]
    assert canonical_json(nested)
    for n_more in (1, 100_000):
        deep = nested
        for _ in range(n_more):
            deep = {"a": deep}
        with pytest.raises(NotCanonical, match="levels deep"):
            canonical_json(deep)


# --- eligibility ------------------------------------------------------------------------------------------------

REPLACEMENT: Json = {"content": {"kind": "text", "text": "[name left out]"}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sourceAuthorization": "denied"}, "SOURCE_AUTHORIZATION"),
        ({"tenantIds": ["other", "another"]}, "TENANT"),
        ({"purposes": ["assistant"]}, "PURPOSE"),
        ({"classification": "restricted"}, "CLASSIFICATION"),
        ({"freshUntil": "2026-08-01T00:00:00.000Z"}, "FRESHNESS"),
        ({"freshUntil": "2025-08-01T00:00:00.000Z"}, "FRESHNESS"),
        ({"promptInjectionTreatment": "deny"}, "INJECTION"),
        ({"promptInjectionTreatment": "redact"}, "REDACTION"),
    ],
)
def test_each_condition_excludes(changes: Json, reason: str) -> None:
    """One failing statement is enough; of the item's text nothing is left, not even where it is required."""
    found = judged([item("a", "canary", eligibility=eligibility(**changes), required=True)])[0][0]
    assert found.verdict is not None
    assert found.verdict.reasons == (Reason[reason],)
    assert found.verdict.selected == ""
    assert "canary" not in repr(found)


def test_all_failing_conditions_are_listed_in_order() -> None:
    """The same seven, in the order of the table, however the item is written."""
    bad = eligibility(
        evidence=[evidence()],
        precedence=3,
        promptInjectionTreatment="redact",
        freshUntil="2026-07-31T23:59:59.999Z",
        classification="restricted",
        purposes=["other"],
        tenantIds=["other"],
        sourceAuthorization="denied",
    )
    order = ("SOURCE_AUTHORIZATION", "TENANT", "PURPOSE", "CLASSIFICATION", "FRESHNESS")
    deny = {**bad, "promptInjectionTreatment": "deny"}
    assert reasons([item("a", eligibility=bad), item("b", eligibility=deny)]) == [
        (*order, "REDACTION"),
        (*order, "INJECTION"),
    ]


def test_an_item_for_any_tenant_serves_a_request_without_one() -> None:
    """No tenants mean any; named ones need a request that says it is for one of them."""
    items = [item("any", eligibility=eligibility(tenantIds=[])), item("acme")]
    assert served(items, scope(tenantId=None)) == ["any"]
    assert served(items) == ["any", "acme"]


@pytest.mark.parametrize(("ceiling", "n_served"), [("public", 1), ("internal", 2), ("restricted", 3)])
def test_classifications_are_ordered(ceiling: str, n_served: int) -> None:
    """Up to the ceiling and no further."""
    items = [item(name, eligibility=eligibility(classification=name)) for name in ("public", "internal", "restricted")]
    assert len(served(items, scope(maxClassification=ceiling))) == n_served


def test_an_item_is_stale_from_its_instant_on() -> None:
    """A millisecond earlier it is fresh; at the instant itself it is stale."""
    items = [item("a", eligibility=eligibility(freshUntil="2026-08-01T00:00:00.000Z"))]
    assert served(items, scope(asOf="2026-07-31T23:59:59.999Z")) == ["a"]
    assert served(items, scope(asOf="2026-08-01T00:00:00.000Z")) == []


def test_conditions_without_a_scope_refuse_the_item() -> None:
    """Nobody said whom it is for; an item without conditions is served as ever."""
    items = [item("a"), {"id": "b", "title": "b", "text": "plain"}]
    assert reasons(items, None) == [("NO_SCOPE",), ()]
    assert judged(items, None)[1] is None


def test_a_replacement_is_served_in_place_of_its_item() -> None:
    """The row has both identities, and the original is nowhere any more."""
    raw = item("a", "canary", eligibility=eligibility(promptInjectionTreatment="redact", redacted=REPLACEMENT))
    found = judged([raw])[0][0]
    assert found.verdict is not None
    assert found.verdict.redacted
    assert found.verdict.entry == entry(item("a", "canary"))
    assert found.verdict.selected == entry(item("a", "[name left out]"))
    assert found.text == "[name left out]"
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        ({}, True),
        ({"priority": "preferred"}, True),
        ({"priority": "optional"}, False),
        ({"provenance": {"kind": "supplied", "source": "user"}}, True),
        ({"provenance": {"kind": "supplied", "source": "system"}}, False),
        ({"content": {"kind": "text", "text": "original"}}, False),
    ],
)
def test_a_replacement_keeps_priority_and_provenance(changes: Json, usable: bool) -> None:
    """Another standing or source would be another item; the original again would be no replacement."""
    conditions = eligibility(promptInjectionTreatment="redact", redacted={**REPLACEMENT, **changes})
    provenance = {"kind": "supplied", "source": "user"}
    raw = item("a", "original", priority="preferred", provenance=provenance, eligibility=conditions)
    assert reasons([raw]) == [() if usable else ("REDACTION",)]


def test_what_is_classified_restricted_stays_so_under_another_name() -> None:
    """The same text said to be public, or the original of a replacement, is restricted wherever it comes again."""
    restricted = eligibility(classification="restricted")
    redacted = eligibility(classification="restricted", promptInjectionTreatment="redact", redacted=REPLACEMENT)
    items = [
        item("public", "one"),
        item("restricted", "one", eligibility=restricted),
        item("free", "two"),
        item("replaced", "three", eligibility=redacted),
        item("original", "three"),
    ]
    found = verdicts(items, scope(maxClassification="restricted"))
    assert [verdict.restricted for verdict in found] == [True, True, False, True, True]
    assert [verdict.restricted for verdict in verdicts(items)] == [True, True, False, True, True]


# --- order and budgets ------------------------------------------------------------------------------------------


def order_of(items: list[Json]) -> list[str]:
    """Ids in the order they are taken: each set of one entry less shows who was the last."""
    taken: list[str] = []
    for n_entries in range(1, len(items) + 1):
        more = [ident for ident in served(items, budget(entries=n_entries)) if ident not in taken]
        taken += more
    return taken


def test_order_is_priority_then_precedence_then_input() -> None:
    """Ties keep the order they came in."""
    items = [
        item("o5", eligibility=eligibility(precedence=5)),
        item("o1", eligibility=eligibility(precedence=1)),
        item("o1 again", eligibility=eligibility(precedence=1)),
        item("p9", priority="preferred", eligibility=eligibility(precedence=9)),
        item("p0", priority="preferred"),
    ]
    assert order_of(items) == ["p0", "p9", "o1", "o1 again", "o5"]


def test_what_does_not_fit_is_passed_over() -> None:
    """Later and smaller items still have their turn, and the row says what was missing."""
    items = [item("large", "x" * 50), item("small", "y" * 10), item("none", "z")]
    found = verdicts(items, budget(n_bytes=10))
    assert [verdict.reasons for verdict in found] == [(Reason.SUPPLIED_BUDGET,), (), (Reason.SUPPLIED_BUDGET,)]
    assert found[0].note == "needs 50 bytes where 10 are left"


@pytest.mark.parametrize(
    ("given", "n_served"),
    [(budget(entries=2), 2), (budget(n_bytes=30), 3), (budget(tokens=7), 2), (budget(tokens=0), 0)],
)
def test_entries_bytes_and_tokens_have_budgets(given: Json, n_served: int) -> None:
    """Each by itself; ten bytes and three words an item."""
    items = [item(str(n), f"ab cd {n:04}") for n in range(5)]
    assert len(served(items, given)) == n_served


def test_a_stated_cost_lets_no_text_in() -> None:
    """Text costs what is counted, whether the caller says less or more."""
    for stated in (None, 0, 1, 1_000):
        assert reasons([item("a", "five words are in here", tokens=stated)], budget(tokens=4)) == [("SUPPLIED_BUDGET",)]
        assert reasons([item("a", "five words are in here", tokens=stated)], budget(tokens=5)) == [()]


def test_data_needs_a_stated_cost_under_a_token_budget() -> None:
    """Nothing of it can be counted here but its description, which is the least it costs."""
    unpriced, priced = item("a", content=binary(b"x")), item("b", content=binary(b"y"), tokens=50)
    assert reasons([unpriced, priced], budget(tokens=60)) == [("MISSING_TOKENS",), ()]
    assert reasons([unpriced, priced], budget(tokens=49)) == [("MISSING_TOKENS",), ("SUPPLIED_BUDGET",)]
    assert reasons([unpriced, priced]) == [(), ()]
    assert reasons([item("c", content=binary(b"z"), tokens=0)], budget(tokens=4)) == [("SUPPLIED_BUDGET",)]


@pytest.mark.parametrize(
    ("given", "unit"), [(budget(n_bytes=15), "bytes"), (budget(tokens=4), "tokens"), (budget(entries=1), "entries")]
)
def test_a_required_item_without_room_is_an_error(given: Json, unit: str) -> None:
    """It is named, with what it lacks; its text is not."""
    with pytest.raises(HaversackError) as refusal:
        judged([item("a", "one two three", required=True), item("b", "canary two three", priority="required")], given)
    error = refusal.value
    assert error.code == "supplied_over_budget"
    assert "'b'" in error.message
    assert unit in error.message
    assert error.details == {"item": "supplied[1]"}
    assert "canary" not in repr((error.message, error.remedy, error.details))


def test_a_required_item_that_may_not_be_served_is_a_row() -> None:
    """Eligibility comes first: what is not eligible needs no room."""
    raw = item("a", "x" * 99, required=True, eligibility=eligibility(sourceAuthorization="denied"))
    assert reasons([raw], budget(n_bytes=1)) == [("SOURCE_AUTHORIZATION",)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"text": "same"}, {"text": "same"}),
        ({"text": "same"}, {"text": "same", "tokens": 9, "provenance": PROVENANCES[0]}),
        (
            {"content": {"kind": "json", "value": {"a": 1, "b": 2}}},
            {"content": {"kind": "json", "value": {"b": 2.0, "a": 1}}},
        ),
        (
            {"content": binary(b"hello", mediaType="text/plain")},
            {"content": {"kind": "reference", "mediaType": "text/plain", "resource": resource()}},
        ),
    ],
)
def test_the_same_content_counts_once(first: Json, second: Json) -> None:
    """At another priority, with another cost or from another source, too; the better placed one stays."""
    items = [item("late", **first), item("early", priority="required", **second)]
    found = verdicts(items)
    assert [verdict.reasons for verdict in found] == [(Reason.DUPLICATE,), ()]
    assert found[0].note == "same content as title early"


def test_a_duplicate_of_what_is_refused_is_none() -> None:
    """Only what is in can be in already."""
    denied = item("a", "same", required=True, eligibility=eligibility(sourceAuthorization="denied"))
    assert reasons([denied, item("b", "same")]) == [("SOURCE_AUTHORIZATION",), ()]


def test_a_row_holds_no_text() -> None:
    """Everything in a verdict is an identity, a number or a word of a set, but for the caller's own names."""
    conditions = eligibility(promptInjectionTreatment="redact", redacted=REPLACEMENT)
    raw = item("a", "canary original", eligibility=conditions, provenance=PROVENANCES[2])
    texts = set(_texts(verdicts([raw])[0]))
    assert not [text for text in texts if "canary" in text or "left out" in text]
    assert {"acme", "assistant.reply", "public", "ev-1"} <= texts


def _texts(value: object) -> list[str]:
    if is_dataclass(value):
        return [text for field in fields(value) for text in _texts(getattr(value, field.name))]
    if isinstance(value, tuple):
        return [text for each in value for text in _texts(each)]
    return [str(value)] if isinstance(value, str) else []


def test_plain_items_are_judged_as_before() -> None:
    """Text, title and score alone: served as it came, required when it says so."""
    found = judged([{"id": "a", "title": "t", "text": "x", "required": True}], None)[0][0]
    assert (found.text, found.required, found.verdict and found.verdict.reasons) == ("x", True, ())


def test_items_made_in_this_process_are_refused_like_those_from_the_wire() -> None:
    """Half a character cannot be hashed, so it has no identity and no place."""
    found = qualify((Supplied("a", "t", "x\ud800"),), None, len)[0][0]
    assert found.verdict is not None
    assert (found.verdict.reasons, found.text) == ((Reason.MALFORMED,), "")
    assert found.verdict.note == "supplied[0]: has half of a character"
