"""A small workspace and short words for the tests of routing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from gathering import World, run

from haversack import pipeline
from haversack.pipeline import Services
from haversack.types import Bundle, HaversackError, Mention, Policy, Request, Route, RoutingRule

LOCAL = "ollama/qwen2.5-coder:7b"
THINKING = "ollama/gpt-oss:20b"  # local, reasons
SMALL = "ollama/llama3"  # a window of 8,192
REMOTE = "openai/gpt-4o"
OTHER = "anthropic/claude-3-5-sonnet"
AUTH = "src/auth/login.py"
SECRET = "canary-41d7"
LONG = Mention("long.md", lines=(0, 3_000))  # lines that were asked for are served whole, or not at all

FILES = {
    AUTH: f"def login(user):\n    return '{SECRET}'\n",
    "src/cart.py": "def add_item(cart, item):\n    cart.append(item)\n",
    "README.md": "# Shop\n\nA cart and a login.\n",
    "long.md": "words of a long page\n" * 3_000,
}


def shop(tmp: Path) -> World:
    return World(tmp, {"shop": dict(FILES)})


def rule(name: str = "r", model: str = REMOTE, *fallbacks: str, **changes: Any) -> RoutingRule:
    return RoutingRule(name, model, fallbacks, **changes)


def chain(model: str, *fallbacks: str, **changes: Any) -> Policy:
    """A policy of one rule that takes every request."""
    return Policy(rules=(rule("all", model, *fallbacks),), **changes)


def asked(text: str = "how does add_item work?", *named: str | Mention, **fields: Any) -> Request:
    mentions = tuple(Mention(each) if isinstance(each, str) else each for each in named)
    return Request(text, mentions=mentions, **fields)


def answer(world: World, policy: Policy, request: Request, services: Services | None = None) -> Bundle:
    world.policy = policy
    return run(pipeline.run(request, world.workspace(request), services or Services()))


def refused(world: World, policy: Policy, request: Request) -> HaversackError:
    with pytest.raises(HaversackError) as caught:
        answer(world, policy, request)
    return caught.value


def chosen(route: Route) -> str:
    return f"{route.model.provider}/{route.model.name}"


def losses(source: Route | HaversackError) -> list[tuple[str, str]]:
    """Model and code of each that lost, as a route has them or as an error tells them."""
    if isinstance(source, Route):
        return [(skip.model, skip.code) for skip in source.skipped]
    told = source.details["skipped"]
    assert isinstance(told, Sequence)
    return [(each["model"], each["code"]) for each in told if isinstance(each, Mapping)]
