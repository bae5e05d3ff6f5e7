"""Model names resolve to families, and every row of the table is plausible."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack import tokens
from haversack.policy import catalogue
from haversack.types import Settings

ROWS: list[dict[str, Any]] = tomllib.loads(
    (resources.files("haversack.policy") / "models.toml").read_text(encoding="utf-8")
)["family"]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("chatgpt-4o-latest", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("ft:gpt-4o-mini-2024-07-18:acme::abc", "gpt-4o-mini"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-32k", "gpt-4-32k"),
        ("gpt-4-turbo-2024-04-09", "gpt-4-turbo"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-4.1", "gpt-4.1"),
        ("gpt-4.1-nano-2025-04-14", "gpt-4.1"),
        ("gpt-5.1-codex", "gpt-5"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("o1-2024-12-17", "o1"),
        ("o1-mini", "o1-mini"),
        ("o3-mini", "o3-mini"),
        ("o4-mini", "o3"),
        ("claude-3-opus-20240229", "claude-3-opus"),
        ("Claude 3 Opus", "claude-3-opus"),
        ("claude-3-5-sonnet-20241022", "claude-3.5"),
        ("claude-3.5-sonnet", "claude-3.5"),
        ("anthropic/claude-3.7-sonnet", "claude-3.7"),
        ("claude-sonnet-4-20250514", "claude-4.5"),
        ("claude-opus-4-1-20250805", "claude-opus-4"),
        ("claude-opus-4-5-20251101", "claude-4.5"),
        ("claude-haiku-4-5", "claude-4.5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-4.5"),
        ("claude-opus-4-8", "claude-opus-4.7"),
        ("claude-opus-5-5", "claude-5"),
        ("claude-something-new", "claude"),
        ("ollama/qwen2.5-coder:7b", "qwen2.5-coder"),
        ("Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-coder"),
        ("ollama/qwen2.5-coder:3b", "qwen2.5-coder-small"),
        ("qwen3-coder:30b", "qwen3-coder"),
        ("deepseek-chat", "deepseek-chat"),
        ("deepseek-r1:70b", "deepseek-r1-distill"),
        ("gemini-2.0-flash", "gemini-flash-1"),
        ("models/gemini-1.5-pro-latest", "gemini-1.5-pro"),
        ("google/gemini-2.5-pro", "gemini-2.5"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1"),
        ("llama-3.3-70b-versatile", "llama-3.1"),
        ("ollama/llama3.2:3b", "llama-3.2"),
        ("ollama/llama3", "llama-3"),
        ("mistral-large-latest", "mistral-tekken"),
        ("codestral-latest", "codestral"),
        ("mixtral-8x7b-32768", "mixtral"),
    ],
)
def test_dated_sized_and_prefixed_names_find_their_family(name: str, family: str) -> None:
    """A name with a date, a size, a host or a maker in it is what it is without them."""
    model = catalogue.resolve(name, Settings())
    assert model.family == family
    assert not model.assumed


@pytest.mark.parametrize("name", ["my-local-7b", "gpt-4omni", "o1000", "not-gpt-4o", "", "/", "gpt", "clau", "💥"])
def test_unknown_names_get_small_guesses_marked_as_such(name: str) -> None:
    """A name of no family has a window of 16,000, and says that it is assumed."""
    model = catalogue.resolve(name, Settings())
    assert (model.family, model.window, model.assumed, model.local) == ("unknown", 16_000, True, False)


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("claude-3-opus-20240229", 50_000),
        ("gpt-4o", 20_000),
        ("qwen2.5-coder", 4_000),
        ("whatever", 4_000),
        ("gpt-4", 6_000),
        ("gpt-3.5-turbo", 4_000),
        ("claude-3-haiku-20240307", 20_000),
        ("codellama", 4_000),
        ("llama3.2", 3_000),
        ("qwen2.5-coder:3b", 3_000),
    ],
)
def test_gather_budgets_are_those_of_the_source_table(name: str, budget: int) -> None:
    """How much context pays off is a property of the family."""
    assert catalogue.resolve(name, Settings()).gather_budget == budget


@pytest.mark.parametrize(
    ("name", "local"),
    [
        ("ollama/qwen2.5-coder:7b", True),
        ("OLLAMA/llama3", True),
        ("ollama/gpt-oss:120b-cloud", False),
        ("qwen2.5-coder:7b", False),
        ("openai/gpt-4o", False),
        ("openrouter/qwen/qwen-2.5-coder", False),
        ("ollama-proxy/llama3", False),
    ],
)
def test_only_a_local_provider_makes_a_model_local(name: str, local: bool) -> None:
    """A bare name says nothing about where the model runs, so it counts as remote."""
    assert catalogue.resolve(name, Settings()).local is local


def test_declared_windows_win() -> None:
    """The user's own figure is taken for known and unknown models, and the reply never exceeds it."""
    settings = Settings(custom_windows={"my-local-7b": 4_096, "ollama/qwen2.5-coder:7b": 8_000})
    mine = catalogue.resolve("ollama/my-local-7b", settings)
    assert (mine.window, mine.assumed, mine.max_output) == (4_096, False, 4_096)
    assert catalogue.resolve("ollama/qwen2.5-coder:7b", settings).window == 8_000
    assert catalogue.resolve("vllm/qwen2.5-coder:7b", settings).window == 32_768


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_is_plausible(row: dict[str, Any]) -> None:
    """Windows, limits and budgets fit into each other, the tokenizer exists, and the source is named."""
    assert 2_000 <= row["window"] <= 2_200_000
    assert 256 <= row["max_output"] <= row["window"]
    assert 1_000 <= row["gather_budget"] <= row["window"] * 0.75
    assert row["tokenizer"] in tokens.FAMILIES
    assert len(row["source"]) > 10
    assert row["provider"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_pattern_resolves_to_its_own_row(row: dict[str, Any]) -> None:
    """No pattern is hidden by a longer one of another family, nor written twice."""
    for pattern in row["match"]:
        assert catalogue.resolve(pattern, Settings()).family == row["name"]


def test_family_names_are_unique() -> None:
    """Two rows never claim one family."""
    names = [row["name"] for row in ROWS]
    assert len(names) == len(set(names))


def test_the_default_model_is_known_and_local() -> None:
    """What is chosen when nobody chooses sends nothing out."""
    model = catalogue.resolve(catalogue.load().default_model, Settings())
    assert model.local
    assert not model.assumed


@given(st.text(max_size=80))
def test_any_text_resolves(name: str) -> None:
    """No name raises, whatever is in it."""
    assert catalogue.resolve(name, Settings()).window > 0
