"""What packing promises, on candidates made up by hypothesis and on small cases by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_builders import WordCounter, candidates, make_candidate, make_file, make_marked, make_plan, spans

from haversack.fitting import closed, n_lines, text_of, touches, without
from haversack.lines import merged
from haversack.pack import PackConfig, pack
from haversack.score import score
from haversack.templates.chat import render_block
from haversack.types import Candidate, Decision, Detail, Intent, Kind, Outcome, OverBudget, Packed, Reason

COUNTER = WordCounter()
quick = settings(max_examples=40, deadline=None)


def packed_of(given_candidates: tuple[Candidate, ...], budget: int, **changes: Any) -> Packed:
    plan = make_plan(**changes)
    return pack(score([make_marked(c) for c in given_candidates], plan), plan, budget, COUNTER)


def decisions_by_id(packed: Packed) -> dict[str, tuple[Outcome, tuple[Reason, ...]]]:
    return {decision.id: (decision.outcome, decision.reasons) for decision in packed.decisions}


# --- promises ---


@quick
@given(candidates(required_share=0), st.integers(0, 400))
def test_the_budget_holds_and_every_candidate_has_one_decision(found: tuple[Candidate, ...], budget: int) -> None:
    """Blocks cost what they say, their sum is within the budget, and it is what the decisions say was added."""
    packed = packed_of(found, budget)
    assert packed.used == sum(block.tokens for block in packed.blocks) <= budget
    assert packed.used == sum(decision.tokens_after for decision in packed.decisions)
    assert all(block.tokens == COUNTER.count(render_block(block)) for block in packed.blocks)
    assert sorted(decision.id for decision in packed.decisions) == sorted(c.id for c in found)


@quick
@given(candidates(required_share=2), st.integers(0, 400))
def test_required_items_survive_or_the_request_is_refused(found: tuple[Candidate, ...], budget: int) -> None:
    """A required item is never left out unless its very text is in under another name."""
    try:
        packed = packed_of(found, budget)
    except OverBudget:
        return
    for candidate, decision in by_candidate(found, packed):
        if candidate.required:
            assert decision.outcome is not Outcome.EXCLUDED or decision.reasons == (Reason.DUPLICATE,)
            assert decision.outcome is not Outcome.SHORTENED or decision.reasons


def by_candidate(found: tuple[Candidate, ...], packed: Packed) -> list[tuple[Candidate, Decision]]:
    decisions = {decision.id: decision for decision in packed.decisions}
    return [(candidate, decisions[candidate.id]) for candidate in found]


@quick
@given(candidates(), st.integers(20, 600))
def test_no_line_is_served_twice_and_blocks_hold_the_lines_they_name(found: tuple[Candidate, ...], budget: int) -> None:
    """A block's text is the lines of its spans with gap lines; spans of one file do not overlap; items have rows."""
    try:
        packed = packed_of(found, budget)
    except OverBudget:
        return
    texts = {(c.file.folder, c.file.path): c.file.lines for c in found if c.file}
    served: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for block in packed.blocks:
        assert block.items
        if block.path is not None:
            lines = texts[block.folder, block.path]
            assert block.text == text_of(block.spans, lines)
            served.setdefault((block.folder, block.path), []).extend(block.spans)
    for found_spans in served.values():
        assert n_lines(merged(found_spans)) == n_lines(tuple(found_spans))
    inside = {item for block in packed.blocks for item in block.items}
    assert inside <= {d.id for d in packed.decisions if d.outcome is not Outcome.EXCLUDED}


@quick
@given(candidates(), st.integers(20, 600), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(found: tuple[Candidate, ...], budget: int, order: random.Random) -> None:
    """Shuffled input gives the same blocks and the same decisions."""
    shuffled = list(found)
    order.shuffle(shuffled)
    plan = make_plan()
    scored = score([make_marked(c) for c in found], plan)
    mixed = list(scored)
    order.shuffle(mixed)
    try:
        first = pack(scored, plan, budget, COUNTER)
    except OverBudget:
        with pytest.raises(OverBudget):
            packed_of(tuple(shuffled), budget)
        return
    assert packed_of(tuple(shuffled), budget) == first
    other = pack(mixed, plan, budget, COUNTER)
    assert other.blocks == first.blocks
    assert sorted(other.decisions, key=lambda d: d.id) == sorted(first.decisions, key=lambda d: d.id)
    assert [d.id for d in other.decisions] == [s.marked.candidate.id for s in mixed]


def required_lines(found: tuple[Candidate, ...], packed: Packed) -> int:
    """Lines of required candidates' richest forms that are in the prompt."""
    served: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for block in packed.blocks:
        served.setdefault((block.folder, block.path or ""), []).extend(block.spans)
    total = 0
    for candidate, decision in by_candidate(found, packed):
        if candidate.required and candidate.file and decision.detail:
            have = merged(served.get((candidate.file.folder, candidate.file.path), ()))
            whole = merged(candidate.forms[0].spans)
            total += n_lines(whole) - n_lines(without(whole, have))
    return total


@quick
@given(candidates(required_share=1), st.integers(0, 500), st.integers(1, 200))
def test_a_bigger_budget_serves_no_fewer_required_lines(found: tuple[Candidate, ...], budget: int, more: int) -> None:
    """More room never refuses what fitted, and never shows less of what is required."""
    try:
        small = packed_of(found, budget)
    except OverBudget:
        return
    big = packed_of(found, budget + more)
    assert required_lines(found, big) >= required_lines(found, small)


@quick
@given(st.integers(0, 30).flatmap(lambda n: st.tuples(spans(n), spans(n))))
def test_line_sets_agree_with_sets_of_numbers(pair: tuple[tuple[tuple[int, int], ...], ...]) -> None:
    """Merging, taking away and touching do what sets of line numbers do."""
    first, second = pair
    as_set = [{line for a, b in one for line in range(a, b)} for one in pair]
    assert {line for a, b in without(first, second) for line in range(a, b)} == as_set[0] - as_set[1]
    assert {line for a, b in merged((*first, *second)) for line in range(a, b)} == as_set[0] | as_set[1]
    assert touches(first, second) is bool(as_set[0] & as_set[1])


# --- by hand ---


def test_a_mentioned_file_that_is_too_large_is_shortened_with_a_reason() -> None:
    """Full does not fit, so the spans are served, and the decision says so."""
    file = make_file("big.py", 100)
    forms = [(Detail.FULL, [(0, 100)]), (Detail.SPANS, [(0, 1), (40, 50)]), (Detail.OUTLINE, [(0, 1)])]
    big = make_candidate("m", file, forms, Kind.FILE, required=True)
    packed = packed_of((big,), 100)
    assert packed.decisions[0].outcome is Outcome.SHORTENED
    assert packed.decisions[0].reasons == (Reason.OVER_BUDGET,)
    assert packed.blocks[0].detail is Detail.SPANS
    assert packed.blocks[0].text.count("⋯\n") == 1
    assert packed_of((big,), 10_000).blocks[0].detail is Detail.FULL


def test_the_largest_required_file_shrinks_first() -> None:
    """Of two mentioned files the small one stays whole."""
    forms = [(Detail.FULL, [(0, 5)]), (Detail.OUTLINE, [(0, 1)])]
    small = make_candidate("s", make_file("s.py", 5), forms, required=True, kind=Kind.FILE)
    forms = [(Detail.FULL, [(0, 100)]), (Detail.OUTLINE, [(0, 3)])]
    big = make_candidate("b", make_file("b.py", 100), forms, Kind.FILE, required=True)
    outcomes = decisions_by_id(packed_of((small, big), 120))
    assert outcomes["s"][0] is Outcome.INCLUDED
    assert outcomes["b"][0] is Outcome.SHORTENED


def test_when_outlines_do_not_fit_the_error_lists_the_items() -> None:
    """The refusal names each required item and what it costs."""
    found = tuple(make_candidate(n, make_file(f"{n}.py", 50), required=True, kind=Kind.FILE) for n in "ab")
    with pytest.raises(OverBudget) as caught:
        packed_of(found, 100)
    items = caught.value.details["items"]
    assert [item["item"] for item in items] == ["a.py", "b.py"]  # type: ignore[index, union-attr]


def test_kinds_do_not_cross_even_for_a_perfect_score() -> None:
    """An edit comes before the best search hit, a note after the worst."""
    edit = make_candidate("e", make_file("e.py"), kind=Kind.EDIT, relevance=0.0)
    code = make_candidate("c", make_file("c.py"), relevance=1.0)
    note = make_candidate("n", None, kind=Kind.MEMORY, text="remember this", relevance=1.0)
    packed = packed_of((note, code, edit), 1_000)
    assert [block.items for block in packed.blocks] == [("e",), ("c",), ("n",)]


def test_late_tiers_get_their_part_when_code_would_fill_the_room() -> None:
    """A memory is served although search found enough small pieces to fill every gap."""
    found = [make_candidate(f"c{at}", make_file(f"c{at}.py", 2), relevance=0.9) for at in range(60)]
    note = make_candidate("n", None, kind=Kind.MEMORY, text="remember " * 25, relevance=0.5)
    assert decisions_by_id(packed_of((*found, note), 600))["n"][0] is Outcome.INCLUDED


def test_what_a_share_leaves_unused_is_lent() -> None:
    """A note larger than the share of notes is served when nobody else wants the room."""
    note = make_candidate("n", None, kind=Kind.MEMORY, text="remember " * 100)
    assert decisions_by_id(packed_of((note,), 300))["n"][0] is Outcome.INCLUDED


def test_code_with_too_little_to_do_with_the_question_stays_out() -> None:
    """Free room is no reason to show it."""
    good = make_candidate("good", make_file("good.py"), relevance=1.0)
    poor = make_candidate("poor", make_file("poor.py"), relevance=0.01)
    outcomes = decisions_by_id(packed_of((good, poor), 1_000))
    assert outcomes["poor"] == (Outcome.EXCLUDED, (Reason.BELOW_FLOOR,))


def test_the_last_token_counts() -> None:
    """A block that costs exactly the budget is served; with one token less it is not."""
    only = make_candidate("c", make_file("c.py", 1))
    cost = packed_of((only,), 1_000).used
    assert packed_of((only,), cost).used == cost
    assert packed_of((only,), cost - 1).used == 0


def test_edits_keep_to_their_share_until_code_had_its_turn() -> None:
    """Ten large edits do not push out the code that answers the question."""
    edits = [make_candidate(f"e{at}", make_file(f"e{at}.py", 10), kind=Kind.EDIT, relevance=1.0) for at in range(10)]
    code = make_candidate("c", make_file("c.py", 30), relevance=0.9)
    outcomes = decisions_by_id(packed_of((*edits, code), 300))
    assert outcomes["c"][0] is Outcome.INCLUDED
    assert (Outcome.EXCLUDED, (Reason.SHARE_CAP,)) in outcomes.values() or Outcome.INCLUDED in [
        outcomes[f"e{at}"][0] for at in range(10)
    ]


def test_one_file_that_matches_everything_leaves_room_for_others() -> None:
    """A stuffed file takes half of the room at most while others have something to show."""
    stuffed = make_file("stuffed.py", 400)
    hits = [
        make_candidate(f"s{at}", stuffed, [(Detail.FULL, [(at * 20, at * 20 + 18)])], relevance=1.0) for at in range(20)
    ]
    others = [make_candidate(f"o{at}", make_file(f"o{at}.py", 15), relevance=0.3) for at in range(3)]
    packed = packed_of((*hits, *others), 600)
    assert {"o0.py", "o1.py", "o2.py"} <= {block.path for block in packed.blocks}


def test_overlapping_hits_are_one_block_and_charged_once() -> None:
    """Selection, symbol and search hit of the same lines cost what their union costs."""
    file = make_file("calc.py", 30)
    hit = make_candidate("hit", file, [(Detail.FULL, [(0, 8)])])
    symbol = make_candidate("symbol", file, [(Detail.FULL, [(5, 12)])], Kind.SYMBOL)
    selection = make_candidate("selection", file, [(Detail.FULL, [(2, 6)])], Kind.SELECTION, required=True)
    packed = packed_of((hit, symbol, selection), 1_000)
    assert len(packed.blocks) == 1
    assert packed.blocks[0].spans == ((0, 12),)
    assert set(packed.blocks[0].items) == {"hit", "symbol", "selection"}


def test_a_hit_inside_a_mentioned_file_is_included_at_no_cost() -> None:
    """Its lines are in the prompt, so it is included, and the reason says through what."""
    file = make_file("calc.py", 30)
    whole = make_candidate("whole", file, kind=Kind.FILE, required=True)
    hit = make_candidate("hit", file, [(Detail.FULL, [(3, 8)])])
    packed = packed_of((whole, hit), 1_000)
    decision = next(d for d in packed.decisions if d.id == "hit")
    assert (decision.outcome, decision.tokens_after) == (Outcome.INCLUDED, 0)


def test_a_copied_file_is_served_once_and_names_its_copy() -> None:
    """Two mentioned files with the same text: one block, whose heading names the other; a found copy is left out."""
    lines = [f"line {at}\n" for at in range(10)]
    one, two, three = (make_file(f"{name}/calc.py", lines=lines) for name in ("a", "b", "c"))
    found = (
        make_candidate("1", one, kind=Kind.FILE, required=True, relevance=1.0),
        make_candidate("2", two, kind=Kind.FILE, required=True),
        make_candidate("3", three),
    )
    packed = packed_of(found, 1_000)
    assert len(packed.blocks) == 1
    assert "b/calc.py" in render_block(packed.blocks[0])
    assert decisions_by_id(packed)["3"] == (Outcome.EXCLUDED, (Reason.DUPLICATE,))
    assert next(d.note for d in packed.decisions if d.id == "3") == "same text as a/calc.py"


def test_a_long_definition_is_served_by_its_first_lines() -> None:
    """It may take a part of the room only, so others fit as well."""
    long = make_candidate("long", make_file("long.py", 300), relevance=1.0)
    short = make_candidate("short", make_file("short.py", 5), relevance=0.2)
    other = make_candidate("other", make_file("other.py", 5), relevance=0.2)
    packed = packed_of((long, short, other), 300)
    decision = next(d for d in packed.decisions if d.id == "long")
    assert decision.outcome is Outcome.SHORTENED
    assert decision.note.endswith("of 300 lines")
    assert decisions_by_id(packed)["short"][0] is Outcome.INCLUDED


def test_a_definition_that_does_not_fit_shows_its_signature() -> None:
    """A poorer form beats nothing."""
    forms = [(Detail.FULL, [(0, 100)]), (Detail.SIGNATURE, [(0, 1)])]
    big = make_candidate("big", make_file("big.py", 100), forms)
    packed = pack(
        score([make_marked(big)], make_plan()), make_plan(), 40, COUNTER, config=PackConfig(min_head_lines=1_000)
    )
    assert packed.blocks[0].text == "big.py line 0\n"
    assert packed.decisions[0].detail is Detail.SIGNATURE


def test_what_does_not_fit_is_passed_over_and_smaller_items_still_come() -> None:
    """A miss ends nothing: room that a large item cannot use goes to the next ones, by score."""
    notes = [
        make_candidate(name, None, kind=Kind.MEMORY, text=f"{name} " * n_words, relevance=relevance)
        for name, n_words, relevance in (("first", 10, 0.9), ("large", 500, 0.8), ("small", 5, 0.7), ("last", 5, 0.6))
    ]
    found = decisions_by_id(packed_of(tuple(notes), 200))
    assert found == {
        "first": (Outcome.INCLUDED, ()),
        "large": (Outcome.EXCLUDED, (Reason.OVER_BUDGET,)),
        "small": (Outcome.INCLUDED, ()),
        "last": (Outcome.INCLUDED, ()),
    }


def test_breadth_comes_before_depth() -> None:
    """Outlines of the best files are in although better definitions could fill the room."""
    files = [make_file(f"f{at}.py", 60) for at in range(3)]
    outlines = [
        make_candidate(f"o{at}", f, [(Detail.OUTLINE, [(0, 1)])], Kind.OUTLINE, 0.2, file_rank=at)
        for at, f in enumerate(files)
    ]
    bodies = [make_candidate(f"b{at}", make_file(f"b{at}.py", 4), relevance=1.0) for at in range(40)]
    packed = packed_of((*outlines, *bodies), 400)
    assert {block.path for block in packed.blocks} >= {"f0.py", "f1.py", "f2.py"}


def test_restricted_text_stays_out_of_a_remote_prompt_only() -> None:
    """The same candidate is served by a local model."""
    marked = make_marked(make_candidate("secret", make_file("secret.py")), restricted=True)
    plan = make_plan()
    remote = pack(score([marked], plan), plan, 1_000, COUNTER)
    assert (remote.blocks, remote.decisions[0].reasons) == ((), (Reason.RESTRICTED,))
    assert pack(score([marked], plan), plan, 1_000, COUNTER, remote=False).blocks


def test_refused_candidates_keep_their_reasons() -> None:
    """What the gate refused is in the decisions, not in a block, even when it is required."""
    candidate = make_candidate("c", make_file("c.py"), required=True)
    plan = make_plan()
    packed = pack(score([make_marked(candidate, refused=(Reason.OUTSIDE,))], plan), plan, 1_000, COUNTER)
    assert packed.blocks == ()
    assert packed.decisions[0].reasons == (Reason.OUTSIDE,)


def test_small_blank_gaps_are_closed() -> None:
    """Two definitions with two blank lines between them make one block; three blank lines keep them apart."""
    lines = ["a\n", "\n", "\n", "b\n", "\n", "\n", "\n", "c\n"]
    assert closed(((0, 1), (3, 4), (7, 8)), lines) == ((0, 4), (7, 8))


def test_an_empty_mentioned_file_is_named() -> None:
    """The model is told that the file is there and empty."""
    packed = packed_of((make_candidate("e", make_file("e.py", 0), kind=Kind.FILE, required=True),), 100)
    assert packed.blocks[0].text == ""
    assert "empty" in render_block(packed.blocks[0])


def test_the_diff_comes_before_code_in_a_review() -> None:
    """Asked to review, the change itself is what the model must see."""
    diff = make_candidate("d", None, kind=Kind.DIFF, text="- old\n+ new\n", relevance=0.1)
    code = make_candidate("c", make_file("c.py"), relevance=1.0)
    assert packed_of((diff, code), 1_000, intent=Intent.REVIEW).blocks[0].kind is Kind.DIFF
    assert packed_of((diff, code), 1_000).blocks[0].kind is Kind.CODE
