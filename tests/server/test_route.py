"""The model, its window and its room."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line_builders import make_plan

from haversack.policy import catalogue
from haversack.room import context_budget, lower_reserve, output_cap, reply_reserve, shortfall
from haversack.route import candidates, settle
from haversack.types import (
    Candidate,
    HaversackError,
    InvalidRequest,
    Kind,
    Marked,
    Message,
    Model,
    Reason,
    Request,
    Role,
    Route,
    Settings,
    Snapshot,
    Source,
)

ITEM = Candidate("c", Source.MENTIONS, Kind.FILE, "c", 1.0, (), "", text="x")
HELD = Marked(ITEM, required=True, restricted=True)


def route(request: Request, marked: Sequence[Marked], settings: Settings) -> Route:
    """The route without a policy, for a prompt that fits everywhere."""
    plan = make_plan(request=request)
    return settle(candidates(plan, marked, Snapshot((), {}, settings, 0.0)), lambda way: way)[0]


def model(window: int, max_output: int) -> Model:
    return Model("m", "p", "f", window, max_output, "o200k", 4_000, local=False)


@pytest.mark.parametrize(
    ("explicit", "setting", "name", "rule"),
    [
        ("openai/gpt-4o", "anthropic/claude-3-opus", "gpt-4o", "the request names the model"),
        (None, "anthropic/claude-3-opus", "claude-3-opus", "setting haversack.model"),
        ("  ", "anthropic/claude-3-opus", "claude-3-opus", "setting haversack.model"),
        (None, "", "qwen2.5-coder:7b", "local default"),
    ],
)
def test_the_request_beats_the_setting_beats_the_default(
    explicit: str | None, setting: str, name: str, rule: str
) -> None:
    """And the route says which of them decided."""
    found = route(Request("q", model=explicit), (), Settings(model=setting))
    assert (found.model.name, found.matched_rule, found.override_used) == (name, rule, explicit == "openai/gpt-4o")


@pytest.mark.parametrize("name", ["x" * 201, "gpt\n4", "\x00"])
def test_nonsense_is_no_model_name(name: str) -> None:
    """Too long or unprintable names are refused as wrong parameters."""
    with pytest.raises(InvalidRequest):
        route(Request("q", model=name), (), Settings())


@pytest.mark.parametrize(
    ("name", "cap", "window", "source"),
    [
        ("gpt-4o", 0, 128_000, "model"),
        ("gpt-4o", 32_000, 32_000, "setting"),
        ("gpt-4o", 500_000, 128_000, "model"),
        ("my-local-7b", 0, 16_000, "assumed"),
        ("my-local-7b", 8_000, 8_000, "setting"),
        ("my-local-7b", 128_000, 16_000, "assumed"),
        (None, 0, 16_000, "assumed"),
        (None, 24_000, 24_000, "setting"),
        (None, 128_000, 32_768, "model"),
    ],
)
def test_the_setting_only_caps_the_window(name: str | None, cap: int, window: int, source: str) -> None:
    """The window is the model's or less, 16,000 when not known, and the source is said."""
    found = route(Request("q", model=name), (), Settings(context_window=cap))
    assert (found.window, found.window_source) == (window, source)


@pytest.mark.parametrize("budget", [1_000, 4_000, 12_000, 16_000, 20_000])
def test_a_budget_without_a_model_is_met(budget: int) -> None:
    """The assumed window grows until the request's own budget fits, history and tools included."""
    history = (Message(Role.USER, "word " * 500),)
    request = Request("where is it?", budget_tokens=budget, history=history, tools_tokens=700)
    found = route(request, (), Settings())
    room = context_budget(found, request, system=900, question=20, history=520, frame=100)
    assert room == budget
    assert 16_000 <= found.window <= found.model.window


def test_a_budget_never_raises_a_cap_or_a_known_window() -> None:
    """What the user set, or what a named model has, is not stretched by a budget."""
    request = Request("q", budget_tokens=100_000)
    assert route(request, (), Settings(context_window=8_000)).window == 8_000
    assert route(Request("q", budget_tokens=100_000, model="gpt-4"), (), Settings()).window == 8_192
    assert route(request, (), Settings()).window == 32_768


def test_the_gather_budget_holds_unless_the_request_says_otherwise() -> None:
    """Without a budget of its own a request gets what pays off with the model; with one, up to the window."""
    plain, asking = Request("q", model="gpt-4o"), Request("q", model="gpt-4o", budget_tokens=60_000)
    assert context_budget(route(plain, (), Settings()), plain, system=10, question=1, history=0) == 20_000
    assert context_budget(route(asking, (), Settings()), asking, system=10, question=1, history=0) == 60_000
    greedy = Request("q", model="gpt-4o", budget_tokens=10**9)
    found = route(greedy, (), Settings())
    assert context_budget(found, greedy, system=10, question=1, history=0) == 128_000 - found.reply_reserve - 11


@pytest.mark.parametrize(("window", "limit", "reserve"), [
    (200_000, 4_096, 4_096), (16_000, 8_192, 4_000), (8_192, 8_192, 2_048), (1_000, 8_192, 256), (400, 8_192, 200),
])  # fmt: skip
def test_the_reserve_is_a_quarter_within_reason(window: int, limit: int, reserve: int) -> None:
    """A quarter of the window, at least 256, at most what the model writes and half the window."""
    assert reply_reserve(model(window, limit), window) == reserve


@pytest.mark.parametrize(
    ("window", "limit", "prompt", "cap"),
    [
        (65_536, 16_384, 52_180, 13_356),
        (131_072, 128_000, 3_072, 128_000),
        (131_072, 128_000, 3_073, 127_999),
        (8_192, 8_192, 9_000, 0),
    ],
)
def test_prompt_and_reply_never_exceed_the_window(window: int, limit: int, prompt: int, cap: int) -> None:
    """The reply's limit is lowered to what is left, to the token."""
    found = Route(model(window, limit), window, "model", 0)
    assert output_cap(found, prompt) == cap


@pytest.mark.parametrize(
    ("name", "cap", "cause"),
    [("gpt-4o", 8_000, "contextWindow"), ("my-local-7b", 0, "assumed"), ("gpt-4", 0, "the model has no more")],
)
def test_a_budget_that_does_not_fit_is_said(name: str, cap: int, cause: str) -> None:
    """When the window gives less than was asked for, a problem names the window and its source."""
    request = Request("q", model=name, budget_tokens=60_000)
    found = route(request, (), Settings(context_window=cap))
    (problem,) = shortfall(found, request, 5_000)
    assert cause in problem.message
    assert "60,000" in problem.message
    assert shortfall(found, request, 60_000) == ()
    assert shortfall(found, Request("q"), 5_000) == ()


@pytest.mark.parametrize(
    ("prompt", "reserve"), [(52_180, 13_356), (49_152, 16_384), (10, 16_384), (65_280, 256), (65_281, 16_384)]
)
def test_the_reserve_gives_way_to_what_must_be_in(prompt: int, reserve: int) -> None:
    """A prompt that must be larger shortens the reply to the token, but never below 256."""
    found = Route(model(65_536, 16_384), 65_536, "model", 16_384)
    assert lower_reserve(found, prompt).reply_reserve == reserve


@given(
    st.sampled_from(["gpt-4", "gpt-4o", "claude-3-opus", "unknown-thing", "ollama/llama3.1", None]),
    st.sampled_from([0, 1_000, 4_000, 16_000, 128_000]),
    st.none() | st.integers(0, 10**7),
    st.tuples(*(st.integers(0, 300_000) for _ in range(4))),
)
def test_the_parts_always_fit(name: str | None, cap: int, budget: int | None, parts: tuple[int, int, int, int]) -> None:
    """Whatever is asked, context never goes below nothing nor over the window with everything else counted."""
    system, question, history, tools = parts
    request = Request("q", model=name, budget_tokens=budget, tools_tokens=tools)
    found = route(request, (), Settings(context_window=cap))
    room = context_budget(found, request, system=system, question=question, history=history)
    assert room >= 0
    assert room == 0 or room + sum(parts) + found.reply_reserve <= found.window
    assert found.window <= catalogue.resolve(name or catalogue.load().default_model, Settings()).window


def test_restricted_content_refuses_an_explicit_remote_model() -> None:
    """A remote model that the request insists on is refused with its own code, and nothing of the file is told."""
    with pytest.raises(HaversackError) as caught:
        route(Request("q", model="openai/gpt-4o"), (HELD,), Settings())
    assert caught.value.code == "override_not_allowed"
    assert caught.value.details["required_restricted"] == 1


def test_restricted_content_turns_a_remote_setting_into_a_local_route() -> None:
    """The user's remote default gives way to the local one, and the route says so."""
    found = route(Request("q"), (HELD,), Settings(model="openai/gpt-4o"))
    assert found.model.local
    assert found.fallback_used
    assert "restricted" in found.matched_rule


@pytest.mark.parametrize(
    "item",
    [
        Marked(ITEM, required=False, restricted=True),
        Marked(ITEM, required=True, restricted=False),
        Marked(ITEM, required=True, restricted=True, refused=(Reason.OUTSIDE,)),
    ],
)
def test_other_content_does_not_force_a_local_model(item: Marked) -> None:
    """What can be dropped, is free, or was refused anyway does not decide the model."""
    assert route(Request("q", model="openai/gpt-4o"), (item,), Settings()).model.name == "gpt-4o"


def test_a_local_model_may_read_restricted_content() -> None:
    """Nothing leaves with a local model."""
    assert route(Request("q", model="ollama/llama3"), (HELD,), Settings()).override_used
