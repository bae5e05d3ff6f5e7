"""The walk along a route: what ends it, and what is believed of models that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from line_builders import make_plan
from routing import LOCAL, OTHER, REMOTE, answer, asked, chain, chosen, losses, refused, rule, shop

from haversack.route import candidates, settle
from haversack.types import Capability, HaversackError, Policy, Route, Settings, Snapshot


@pytest.mark.parametrize(
    ("code", "is_asked_next"), [("context_window_exceeded", True), ("supplied_over_budget", False), ("x", False)]
)
def test_only_a_window_that_is_too_small_lets_the_next_model_try(code: str, is_asked_next: bool) -> None:
    """Another error would be the same with every model: it comes at once, as it is, and nobody else is tried."""
    tried: list[str] = []

    def fit(way: Route) -> None:
        tried.append(chosen(way))
        if chosen(way) == REMOTE:
            raise HaversackError(code, "It does not work.", "")

    options = candidates(make_plan(), (), Snapshot((), {}, Settings(), 0.0, policy=chain(REMOTE, OTHER)))
    if is_asked_next:
        assert losses(settle(options, fit)[0]) == [(REMOTE, code)]
        assert tried == [REMOTE, OTHER]
        return
    with pytest.raises(HaversackError) as caught:
        settle(options, fit)
    assert (caught.value.code, tried) == (code, [REMOTE])
    assert "skipped" not in caught.value.details


def test_what_a_rule_insists_on_is_not_believed_of_a_model_that_nobody_knows(tmp_path: Path) -> None:
    """A window in the settings says nothing of abilities. What only the turn needs is left to the user's choice."""
    world = shop(tmp_path)
    world.settings = Settings(custom_windows={"acme/seer": 50_000})
    gated = Policy(rules=(rule("r", "acme/seer", LOCAL, requires=(Capability.TOOLS,)),))
    route = answer(world, gated, asked()).route
    assert (chosen(route), losses(route)) == (LOCAL, [("acme/seer", "missing_capability")])
    assert chosen(answer(world, chain("acme/seer", LOCAL), asked(needs=(Capability.TOOLS,))).route) == "acme/seer"


def test_a_local_override_is_refused_for_what_it_lacks(tmp_path: Path) -> None:
    """That the turn may not leave this machine is nothing against a model that runs here."""
    request = asked(model="ollama/llama3", local_only=True, needs=(Capability.TOOLS,))
    error = refused(shop(tmp_path), Policy(), request)
    assert error.code == "missing_capability"
    assert losses(error) == [("ollama/llama3", "missing_capability")]


def test_without_a_limit_nobody_asks_for_a_price(tmp_path: Path) -> None:
    """A model whose price is unknown serves without a word about it."""
    bundle = answer(shop(tmp_path), chain("openrouter/openai/gpt-4o"), asked())
    assert (bundle.route.cost, bundle.route.approvals) == (None, ())
    assert "cost_unknown" not in {problem.code for problem in bundle.problems}
