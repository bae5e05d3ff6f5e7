"""What a turn may cost, to the last digit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack.policy.catalogue import resolve
from haversack.policy.costs import SHORT_REPLY, amount, estimate, needs_approval
from haversack.types import Cost, DeclaredModel, Model, Settings

PRICED = Model(
    "m", "p", "f", 100_000, 8_000, "o200k", 4_000, local=False, input_price="2.50", output_price="10"
)  # fmt: skip


def test_a_cost_is_exact() -> None:
    """1,001 tokens at 2.50 and replies of 256 and 8,000 tokens at 10 dollars a million."""
    assert estimate(PRICED, 1_001, 8_000, "1") == Cost("0.0050625", "0.0825025", "1")
    assert estimate(PRICED, 0, 0) == Cost("0", "0")


def test_a_price_that_is_not_known_gives_no_cost() -> None:
    """But a model on the user's own machine costs nothing, unless it is declared to."""
    unpriced = Model("m", "p", "f", 100_000, 8_000, "o200k", 4_000, local=False, output_price="10")
    assert estimate(unpriced, 10, 10) is None
    local = Model("m", "ollama", "f", 100_000, 8_000, "o200k", 4_000, local=True)
    assert estimate(local, 10, 10) == Cost("0", "0")


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.decimals(0, 1_000, places=4), st.decimals(0, 1_000, places=4))
def test_a_range_is_a_range(prompt: int, longest: int, per_input: Decimal, per_output: Decimal) -> None:
    """The low end is never over the high one, and both are plain digits that read back as what they are."""
    model = Model("m", "p", "f", 1, 1, "o200k", 1, False, input_price=str(per_input), output_price=str(per_output))
    cost = estimate(model, prompt, longest)
    assert cost is not None
    low, high = Decimal(cost.low), Decimal(cost.high)
    assert low <= high
    assert high * 1_000_000 == prompt * per_input + longest * per_output
    assert low * 1_000_000 == prompt * per_input + min(SHORT_REPLY, longest) * per_output
    assert set(cost.high) <= set("0123456789.")


@pytest.mark.parametrize(
    ("high", "limit", "ask"),
    [("0.5", "0.50", False), ("0.51", "0.5", True), ("0.5", "", False), (None, "1", True), (None, "", False),
     ("0", "0", False), ("0.1", "a lot", True), ("0.1", "-1", True)],
)  # fmt: skip
def test_what_cannot_be_shown_to_stay_under_the_limit_is_asked(high: str | None, limit: str, ask: bool) -> None:
    """An unknown cost and a limit that is no number are asked about; without a limit nothing is."""
    cost = Cost("0", high, limit) if high is not None else None
    assert needs_approval(cost, limit) is ask


@pytest.mark.parametrize("text", ["", "x", "-1", "NaN", "Infinity", "1e999999", "1e-999999", "9" * 50])
def test_no_amount(text: str) -> None:
    """Only plain, finite amounts of a sane size count."""
    assert amount(text) is None


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("openai/gpt-4o-2024-08-06", "2.50"),
        ("openai/gpt-4o-2024-05-13", "5"),
        ("anthropic/claude-3-5-sonnet-20241022", "3"),
        ("anthropic/claude-opus-5-5", "4"),
        ("openai/gpt-5.5-mini", ""),
        ("openai/o1-pro", ""),
        ("openai/gpt-3.5-turbo-0613", ""),
        ("openrouter/openai/gpt-4o", ""),
    ],
)
def test_a_price_is_that_of_the_very_model_at_its_makers(name: str, price: str) -> None:
    """A date changes nothing unless its release is listed; another size, version or host has no known price."""
    assert resolve(name, Settings()).input_price == price


def test_a_declared_price_wins_over_the_catalogue() -> None:
    """Each of the two for itself; what is not declared stays as the catalogue has it."""

    def prices(**declared: Any) -> tuple[str, str]:
        model = resolve("openai/gpt-4o", Settings(), (DeclaredModel("openai/gpt-4o", **declared),))
        return model.input_price, model.output_price

    known = prices()
    assert all(known)
    assert prices(input_price="77", output_price="88") == ("77", "88")
    assert prices(input_price="77") == ("77", known[1])
    assert prices(output_price="88") == (known[0], "88")


def test_the_price_of_the_first_declaration_stands() -> None:
    """A later one that spells the same model in another way makes it no cheaper."""
    first, later = DeclaredModel("acme/seer", input_price="9"), DeclaredModel(" Acme/models/Seer", input_price="0")
    assert resolve("acme/seer", Settings(), (first, later)).input_price == "9"
    assert resolve("acme/models/seer", Settings(), (first, later)).input_price == "9"
