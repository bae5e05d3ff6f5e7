"""Random policies and requests: whoever is chosen may serve, and whoever lost did so for a reason that is true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from gathering import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from routing import AUTH, LONG, answer, asked, chosen, rule, shop

from haversack.types import (
    Capability,
    DeclaredModel,
    DefaultRoute,
    Effort,
    FailedModel,
    HaversackError,
    Intent,
    Policy,
    RemoteMode,
    Request,
    Route,
)


@dataclass(frozen=True)
class Facts:
    """What is known of a model, written down by hand."""

    local: bool
    key: str  # the provider whose key it needs, "" for none
    window: int
    can: frozenset[str]


BASIC = frozenset({"streaming", "systemPrompt"})
ABLE = BASIC | {"tools", "jsonOutput"}
MODELS: Mapping[str, Facts | None] = {
    "acme/seer": Facts(False, "", 60_000, frozenset({"tools"})),
    "openai/gpt-4": Facts(False, "openai", 8_192, BASIC | {"tools"}),
    "openai/gpt-4o": Facts(False, "openai", 128_000, ABLE | {"images"}),
    "openai/o3": Facts(False, "openai", 200_000, ABLE | {"images", "reasoning"}),
    "anthropic/claude-3-5-sonnet": Facts(False, "anthropic", 200_000, BASIC | {"tools", "images"}),
    "ollama/qwen2.5-coder:7b": Facts(True, "", 32_768, ABLE),
    "ollama/llama3": Facts(True, "", 8_192, BASIC | {"jsonOutput"}),
    "ollama/gpt-oss:20b": Facts(True, "", 131_072, ABLE | {"reasoning"}),
    "ollama/gpt-oss:120b-cloud": Facts(False, "", 131_072, ABLE | {"reasoning"}),
    "ollama/nobody": None,
}
DECLARED = (DeclaredModel("acme/seer", window=60_000, capabilities=(Capability.TOOLS,), requires_key=False),)
DISPENSABLE = {"streaming", "reasoning", "memory"}
ASSUMED = 16_000  # the window of a model that nobody named
LONG_NEEDS = 16_500  # tokens of the long page, roughly: it fits neither that nor 8,192, and every window from 32,768 on

NAMES = st.lists(st.sampled_from(sorted(MODELS)), min_size=1, max_size=5, unique=True)
CAPABILITIES = st.lists(st.sampled_from(list(Capability)), max_size=2).map(tuple)
RULES = st.builds(
    lambda at, names, **fields: rule(f"r{at}", *names, **fields),
    st.integers(0, 99),
    NAMES,
    priority=st.integers(0, 2),
    effort=st.sampled_from([Effort.LOW, Effort.MEDIUM, Effort.HIGH]),
    intent=st.none() | st.sampled_from([Intent.CHAT, Intent.EDIT]),
    paths=st.sampled_from([(), (), ("src/**",), ("docs/**",), ("long.md", "src/auth/")]),
    local_only=st.sampled_from([False, False, True]),
    requires=CAPABILITIES,
)
POLICIES = st.builds(
    Policy,
    rules=st.lists(RULES, max_size=4).map(tuple),
    default=st.none() | st.builds(lambda names: DefaultRoute(names[0], tuple(names[1:])), NAMES),
    models=st.just(DECLARED),
    allow_degraded=st.booleans(),
    local_only=st.sampled_from([False, False, False, True]),
    remote_mode=st.sampled_from([RemoteMode.ALLOW, RemoteMode.ALLOW, RemoteMode.ASK, RemoteMode.DENY]),
    restricted_paths=st.sampled_from([(), (), ("src/auth/",)]),
)
REQUESTS = st.builds(
    lambda named, **fields: asked("how does it work?", *named, **fields),
    st.lists(st.sampled_from([AUTH, "src/cart.py", LONG]), max_size=2),
    model=st.none() | st.none() | st.sampled_from(sorted(set(MODELS) - {"ollama/nobody"})),
    intent=st.sampled_from([Intent.CHAT, Intent.EDIT, Intent.PLAN]),
    effort=st.none() | st.sampled_from([Effort.LOW, Effort.HIGH]),
    needs=CAPABILITIES,
    local_only=st.sampled_from([False, False, False, True]),
    providers=st.none() | st.lists(st.sampled_from(["openai", "anthropic"]), unique=True).map(tuple),
    failed=st.lists(st.builds(FailedModel, st.sampled_from(sorted(MODELS)), st.just("rate_limited")), max_size=2).map(
        tuple
    ),
    tools_tokens=st.sampled_from([0, 0, 100]),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return shop(tmp_path_factory.mktemp("ws"))


@dataclass(frozen=True)
class Expected:
    """The turn as the documentation says it is read, by the plainest code."""

    names: tuple[str, ...]
    shut: bool
    wanted: frozenset[str]
    gate: frozenset[str]
    policy: Policy
    request: Request

    def true_of(self, name: str) -> set[str]:
        """Every code that may be said of the model."""
        facts = MODELS[name]
        if facts is None:
            return {"unknown_model"}
        providers = self.request.providers
        is_named = self.request.model or self.policy.rules or self.policy.default
        window = facts.window if is_named else min(facts.window, ASSUMED)
        said = {
            "missing_credentials": providers is not None and facts.key != "" and facts.key not in providers,
            "rate_limited": any(each.model == name for each in self.request.failed),
            "local_only": self.shut and not facts.local,
            "remote_denied": self.policy.remote_mode is RemoteMode.DENY and not facts.local,
            "missing_capability": bool(self.wanted - facts.can),
            "context_window_exceeded": LONG in self.request.mentions and window < LONG_NEEDS,
        }
        return {code for code, holds in said.items() if holds}

    def may_run_degraded(self, name: str) -> bool:
        facts = MODELS[name]
        lacking = self.wanted - facts.can if facts is not None else {""}
        return self.policy.allow_degraded and lacking <= DISPENSABLE - self.gate


def expected(policy: Policy, request: Request) -> Expected:
    named = {mention.value for mention in request.mentions}

    def holds(paths: tuple[str, ...]) -> bool:
        inside = {"src/**": {AUTH, "src/cart.py"}, "docs/**": set[str](), "long.md": {"long.md"}, "src/auth/": {AUTH}}
        return any(inside[path] & named for path in paths)

    matching = [
        each for each in policy.rules if each.intent in (None, request.intent) and (not each.paths or holds(each.paths))
    ]
    matching.sort(key=lambda each: (each.priority, -2 * bool(each.paths) - (each.intent is not None)))
    found = matching[0] if matching and request.model is None else None
    if request.model is not None:
        names: tuple[str, ...] = (request.model,)
    elif found is not None:
        names = (found.model, *found.fallbacks)
    elif policy.default is not None:
        names = (policy.default.model, *policy.default.fallbacks)
    else:
        names = () if policy.rules else ("ollama/qwen2.5-coder:7b",)
    kept = policy.restricted_paths + tuple(path for each in policy.rules if each.local_only for path in each.paths)
    shut = request.local_only or policy.local_only or holds(kept) or (found is not None and found.local_only)
    effort = request.effort or (found.effort if found is not None else Effort.MEDIUM)
    gate = frozenset(found.requires if found is not None else ())
    wanted = {*request.needs, *gate}
    wanted |= ({"tools"} if request.tools_tokens else set()) | ({"reasoning"} if effort is Effort.HIGH else set())
    return Expected(names, shut, frozenset(wanted), gate, policy, request)


def outcome(world: World, policy: Policy, request: Request) -> Route | HaversackError:
    try:
        return answer(world, policy, request).route
    except HaversackError as error:
        return error


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(POLICIES, REQUESTS)
def test_the_chosen_model_may_serve_and_every_other_lost_for_a_true_reason(
    world: World, policy: Policy, request_: Request
) -> None:
    """The first of the route that can do everything, else the first that may run degraded, else a refusal."""
    turn = expected(policy, request_)
    found = outcome(world, policy, request_)
    able = [name for name in turn.names if not turn.true_of(name)]
    degraded = [
        name for name in turn.names if turn.true_of(name) == {"missing_capability"} and turn.may_run_degraded(name)
    ]
    serving = next(iter(able + degraded), None)
    if isinstance(found, Route):
        assert serving is not None
        assert chosen(found) == serving
        lost = turn.names[: turn.names.index(serving)] if serving in able else turn.names
        assert [skip.model for skip in found.skipped] == [name for name in lost if name != serving]
        assert all(skip.code in turn.true_of(skip.model) and skip.reason for skip in found.skipped)
        assert set(found.degraded) == (set() if serving in able else turn.wanted - _can(serving))
        assert found.model.local or not (turn.shut or policy.remote_mode is RemoteMode.DENY)
    else:
        assert serving is None
        if not turn.names:
            assert found.code == "no_route"
            return
        told = found.details["skipped"]
        assert isinstance(told, list)
        assert [each["model"] for each in told] == list(turn.names)
        assert all(each["code"] in turn.true_of(each["model"]) and each["reason"] for each in told)
        assert found.code == _refusal(turn, told)


def _can(name: str) -> frozenset[str]:
    facts = MODELS[name]
    assert facts is not None
    return facts.can


def _refusal(turn: Expected, told: list[dict[str, str]]) -> str:
    if (turn.shut or turn.policy.remote_mode is RemoteMode.DENY) and _any_remote(turn.names):
        return "override_not_allowed" if turn.request.model is not None else "local_model_required"
    return told[0]["code"] if len(told) == 1 else "fallback_exhausted"


def _any_remote(names: tuple[str, ...]) -> bool:
    return any(facts is not None and not facts.local for facts in map(MODELS.get, names))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(POLICIES, REQUESTS)
def test_routing_is_a_function_of_its_arguments(world: World, policy: Policy, request_: Request) -> None:
    """Asked twice, with other questions between, it decides and refuses in the same words."""
    first = outcome(world, policy, request_)
    outcome(world, Policy(), asked())
    again = outcome(world, policy, request_)
    if isinstance(first, HaversackError):
        assert isinstance(again, HaversackError)
        assert (first.code, first.message, first.details) == (again.code, again.message, again.details)
    else:
        assert first == again
