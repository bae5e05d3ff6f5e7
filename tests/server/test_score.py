"""Scores are sums that can be printed, and kinds never cross."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from line_builders import candidates, make_candidate, make_file, make_marked, make_plan

from haversack.score import TIER_GAP, Near, score
from haversack.types import Candidate, Intent, Kind, Scored


def one(candidate: Candidate, **changes: Any) -> Scored:
    return score([make_marked(candidate)], make_plan(**changes))[0]


@settings(max_examples=60, deadline=None)
@given(candidates(), st.sampled_from(list(Intent)), st.booleans())
def test_a_score_is_the_sum_of_its_parts_and_tiers_do_not_cross(
    found: tuple[Candidate, ...], intent: Intent, broad: bool
) -> None:
    """Sorted by score alone, tiers come in order; every candidate is scored once."""
    scored = score([make_marked(c) for c in found], make_plan(intent=intent, broad=broad))
    assert all(item.score == sum(value for _, value in item.parts) for item in scored)
    assert all(a.tier <= b.tier for a, b in pairwise(sorted(scored, key=lambda item: -item.score)))
    assert all((a.tier, -a.score) <= (b.tier, -b.score) for a, b in pairwise(scored))
    assert sorted(item.marked.candidate.id for item in scored) == sorted(c.id for c in found)


def test_the_sources_own_parts_survive_under_its_name() -> None:
    """A semantic hit keeps its vector part, and what the parts leave open of the relevance is a part too."""
    candidate = make_candidate("c", make_file("c.py"), parts=(("vector", 0.4), ("keyword", 0.0)), relevance=0.7)
    parts = dict(one(candidate).parts)
    assert parts["hybrid.vector"] == 0.4
    assert round(sum(value for name, value in parts.items() if name.startswith("hybrid.")), 9) == 0.7


def test_a_source_that_claims_too_much_stays_in_its_tier() -> None:
    """Relevance far out of range is limited by a part that says so."""
    wild = one(make_candidate("c", make_file("c.py"), relevance=1_000.0))
    edit = one(make_candidate("e", make_file("e.py"), kind=Kind.EDIT, relevance=0.0))
    assert wild.score < edit.score
    assert "limit" in dict(wild.parts)


def test_an_exact_definition_comes_before_a_slightly_better_match() -> None:
    """The question spells the name out, so its definition wins over what searches a little better."""
    definition = make_candidate("d", make_file("d.py"), relevance=0.8, heading=("Context", "invoke"))
    other = make_candidate("o", make_file("o.py"), relevance=0.9, heading=("Context", "other"))
    scored = score([make_marked(definition), make_marked(other)], make_plan(identifiers=("invoke",)))
    assert [item.marked.candidate.id for item in scored] == ["d", "o"]


def test_the_active_file_and_recent_files_win_ties() -> None:
    """Equal matches: the file in front of the user, the one touched last, its neighbour, older ones, the rest."""
    names = ["a/a-plain.py", "b/b-neighbour.py", "a/c-older.py", "a/d-newest.py", "b/e-active.py"]
    found = [make_marked(make_candidate(name, make_file(name))) for name in names]
    near = Near("ws/b/e-active.py", ("ws/a/d-newest.py", "ws/a/x.py", "ws/a/y.py", "ws/a/c-older.py"))
    order = [item.marked.candidate.id for item in score(found, make_plan(), near)]
    assert order == ["b/e-active.py", "a/d-newest.py", "b/b-neighbour.py", "a/c-older.py", "a/a-plain.py"]


def test_broad_questions_put_the_overview_before_code() -> None:
    """And otherwise after it."""
    overview = make_candidate("o", make_file("README.md"), kind=Kind.OVERVIEW)
    code = make_candidate("c", make_file("c.py"))
    for broad, first in ((True, "o"), (False, "c")):
        scored = score([make_marked(overview), make_marked(code)], make_plan(broad=broad))
        assert scored[0].marked.candidate.id == first


def test_how_to_questions_put_guides_and_questions_on_changes_their_diff_before_code() -> None:
    """Whatever is intended with it; and otherwise code comes first."""
    guide = make_candidate("guide", make_file("CONTRIBUTING.md"), kind=Kind.OVERVIEW)
    diff = make_candidate("diff", None, kind=Kind.DIFF, text="+x")
    code = make_candidate("code", make_file("c.py"))
    marked = [make_marked(each) for each in (guide, diff, code)]
    plans = ((make_plan(practical=True), "guide"), (make_plan(changes=True), "diff"), (make_plan(), "code"))
    for plan, first in plans:
        assert score(marked, plan)[0].marked.candidate.id == first


def test_where_a_trace_happened_comes_before_the_definitions_of_names_in_it() -> None:
    """The outer frames' functions are names of the question as well."""
    inner = make_candidate("inner", make_file("i.py"), parts=(("trace", 1.0),), relevance=1.0, heading=("inner",))
    outer = make_candidate("outer", make_file("o.py"), relevance=1.0, heading=("outer",))
    scored = score([make_marked(outer), make_marked(inner)], make_plan(identifiers=("outer",)))
    assert [item.marked.candidate.id for item in scored] == ["inner", "outer"]


def test_a_kept_rule_comes_before_everything_that_may_be_left_out() -> None:
    """Other memories come after code."""
    rule = make_candidate("rule", None, kind=Kind.MEMORY, text="use tabs", parts=(("rule", 1.0),))
    note = make_candidate("note", None, kind=Kind.MEMORY, text="a note", parts=(("knowledge", 1.0),))
    edit = make_candidate("edit", make_file("e.py"), kind=Kind.EDIT)
    code = make_candidate("code", make_file("c.py"))
    scored = score([make_marked(c) for c in (note, code, edit, rule)], make_plan())
    assert [item.marked.candidate.id for item in scored] == ["rule", "edit", "code", "note"]


def test_required_candidates_share_the_first_tier_whatever_their_kind() -> None:
    """A required diff is as safe as a mentioned file."""
    diff = one(make_candidate("d", None, kind=Kind.DIFF, text="+ x", required=True))
    assert diff.tier == 0
    assert dict(diff.parts)["tier"] >= TIER_GAP


def test_ties_are_broken_by_id() -> None:
    """Equal candidates come in the order of their ids, however they arrived."""
    found = [make_marked(make_candidate(name, make_file("same.py"))) for name in ("c", "a", "b")]
    assert [item.marked.candidate.id for item in score(found, make_plan())] == ["a", "b", "c"]
