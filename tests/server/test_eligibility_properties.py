"""Whatever items a request brings: one row each, in order, within the budget, and the same again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from supplying import Json, binary, budget, eligibility, item, judged, request

from haversack.policy.canonical import canonical_json
from haversack.policy.eligibility import qualify
from haversack.types import HaversackError, Priority, Reason

ORDER = list(Reason)
FACTS = ORDER[ORDER.index(Reason.SOURCE_AUTHORIZATION) : ORDER.index(Reason.REDACTION) + 1]
WORDS = st.sampled_from(["", "a", "a b", "a b c", "é" * 5, "x" * 40])
CONTENTS = st.one_of(
    st.builds(lambda text: {"kind": "text", "text": text}, WORDS),
    st.builds(lambda value: {"kind": "json", "value": value}, st.dictionaries(WORDS, st.integers(0, 3), max_size=2)),
    st.builds(binary, st.binary(max_size=3)),
)
REPLACEMENTS = st.builds(lambda text: {"content": {"kind": "text", "text": text}}, WORDS)


@st.composite
def conditions(draw: st.DrawFn) -> Json:
    treatment = draw(st.sampled_from(["allow", "allow", "redact", "deny"]))
    return eligibility(
        sourceAuthorization=draw(st.sampled_from(["authorized", "authorized", "denied"])),
        tenantIds=draw(st.sampled_from([[], ["acme"], ["other"]])),
        purposes=draw(st.sampled_from([["assistant.reply"], ["other"]])),
        classification=draw(st.sampled_from(["public", "internal", "restricted"])),
        freshUntil=draw(st.sampled_from(["2026-08-01T00:00:00.000Z", "2026-08-01T00:00:00.001Z"])),
        promptInjectionTreatment=treatment,
        precedence=draw(st.integers(0, 2)),
        redacted=draw(st.none() | REPLACEMENTS) if treatment == "redact" else None,
    )


@st.composite
def item_lists(draw: st.DrawFn) -> list[Any]:
    """Mostly well-formed, with some of any other JSON between them."""
    n_items = draw(st.integers(0, 8))
    return [
        draw(st.sampled_from([None, 5, [], {"id": "0"}, {"id": [], "title": "t", "text": "x"}]))
        if draw(st.integers(0, 9)) == 0
        else item(
            str(place),
            content=draw(CONTENTS),
            priority=draw(st.sampled_from(["preferred", "optional", None])),
            tokens=draw(st.none() | st.integers(0, 9)),
            eligibility=draw(st.none() | conditions()),
        )
        for place in range(n_items)
    ]


BUDGETS = st.builds(budget, st.integers(1, 6), st.integers(0, 60), st.none() | st.integers(0, 20))


@given(item_lists(), BUDGETS)
@settings(max_examples=150, deadline=None)
def test_every_item_has_one_verdict_in_its_place(items: list[Any], limits: Json) -> None:
    """As many as there are items, in their order; served exactly where there is no reason against it."""
    found, selection = judged(items, limits)
    assert [each.verdict.place if each.verdict else None for each in found] == list(range(len(items)))
    for each in found:
        assert each.verdict is not None
        assert bool(each.verdict.selected) == (not each.verdict.reasons)
        if each.verdict.reasons:
            assert each.text == ""
        facts = [FACTS.index(reason) for reason in each.verdict.reasons if reason in FACTS]
        assert facts == sorted(set(facts))
        assert len(facts) == len(each.verdict.reasons) or len(each.verdict.reasons) == 1
    assert judged(items, limits) == (found, selection)


@given(item_lists(), BUDGETS)
@settings(max_examples=150, deadline=None)
def test_budgets_are_never_exceeded(items: list[Any], limits: Json) -> None:
    """Entries, bytes and tokens, counted again from what may be served."""
    found, selection = judged(items, limits)
    most = limits["budget"]
    chosen = [each for each in found if each.verdict and each.verdict.selected]
    assert selection is not None
    assert len(chosen) == selection.n_entries <= most["maxEntries"]
    assert selection.n_bytes <= most["maxBytes"]
    assert len({each.text for each in chosen}) == len(chosen)
    if most["maxTokens"] is not None:
        assert sum(len(each.text.split()) for each in chosen) <= most["maxTokens"]
        assert selection.tokens is not None
        assert selection.tokens <= most["maxTokens"]


@given(item_lists(), BUDGETS)
@settings(max_examples=100, deadline=None)
def test_no_better_item_yields_to_a_worse_one(items: list[Any], limits: Json) -> None:
    """What is passed over for lack of room would not fit either if every item behind it were gone."""
    asked = request(items, limits)
    found, _ = qualify(asked.supplied, asked.eligibility, lambda text: len(text.split()))
    rank = {priority: place for place, priority in enumerate(Priority)}

    def key(place: int) -> tuple[int, int, int]:
        conditions = asked.supplied[place].eligibility
        return rank[asked.supplied[place].priority], conditions.precedence if conditions else 0, place

    for place, each in enumerate(found):
        if each.verdict and each.verdict.reasons == (Reason.SUPPLIED_BUDGET,):
            ahead = [asked.supplied[other] for other in range(len(items)) if key(other) <= key(place)]
            again, _ = qualify(ahead, asked.eligibility, lambda text: len(text.split()))
            mine = next(one for one in again if one.id == each.id)
            assert mine.verdict is not None
            assert mine.verdict.reasons == (Reason.SUPPLIED_BUDGET,)


@given(item_lists(), BUDGETS, st.integers(0, 7))
@settings(max_examples=100, deadline=None)
def test_a_required_item_is_in_refused_or_an_error(items: list[Any], limits: Json, which: int) -> None:
    """Never dropped in silence for lack of room."""
    if which < len(items) and isinstance(items[which], dict) and "content" in items[which]:
        items[which]["priority"] = "required"
        reasons, named = _outcome_of(items, limits, which)
        assert named in ("", f"supplied[{which}]")
        assert not {Reason.SUPPLIED_BUDGET, Reason.MISSING_TOKENS} & reasons


def _outcome_of(items: list[Any], limits: Json, which: int) -> tuple[set[Reason], object]:
    """Reasons of one item, and the item that an error names."""
    try:
        verdict = judged(items, limits)[0][which].verdict
    except HaversackError as error:
        return set(), error.details["item"]
    return set(verdict.reasons if verdict else ()), ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def reordered(value: Any) -> Any:
    """The same value with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {name: reordered(value[name]) for name in reversed(list(value))}
    return [reordered(each) for each in value] if isinstance(value, list) else value


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_the_order_of_keys_does_not_count(value: Any) -> None:
    """Nor does a way through JSON text; the canonical spelling is a fixed point."""
    text = canonical_json(value)
    assert canonical_json(reordered(value)) == text
    assert canonical_json(json.loads(text)) == text


@given(item_lists(), BUDGETS)
@settings(max_examples=100, deadline=None)
def test_identities_do_not_depend_on_the_order_of_keys(items: list[Any], limits: Json) -> None:
    """Every verdict and the selection are the same for the request with all keys turned round."""
    assert judged(reordered(items), reordered(limits)) == judged(items, limits)
