"""Where the prompt may go: local models for what must stay here, costs and disclosure that the user is asked about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gathering import World
from routing import AUTH, LOCAL, OTHER, REMOTE, SECRET, SMALL, answer, asked, chain, chosen, losses, refused, rule, shop

from haversack.policy.providers import provider_name
from haversack.record_form import Question, make_record
from haversack.types import (
    DeclaredModel,
    DefaultRoute,
    FailedModel,
    InvalidRequest,
    Outcome,
    Policy,
    RemoteMode,
    Request,
    Settings,
    Supplied,
)

RESTRICTED = ("src/auth/",)
# Every way in which a turn is kept from remote models: the policy, the request, and the code each model is told.
SHUT: dict[str, tuple[Policy, Request, str]] = {
    "a restricted file that is required": (Policy(restricted_paths=RESTRICTED), asked("why?", AUTH), "local_only"),
    "a blocked file that is required": (Policy(blocked_paths=RESTRICTED), asked("why?", AUTH), "local_only"),
    "the paths of a rule for local models": (
        Policy(rules=(rule("mine", LOCAL, paths=RESTRICTED, local_only=True, intent=None, priority=5_000),)),
        asked("why?", AUTH),
        "local_only",
    ),
    "the request": (Policy(), asked(local_only=True), "local_only"),
    "the policy": (Policy(local_only=True), asked(), "local_only"),
    "no remote models at all": (Policy(remote_mode=RemoteMode.DENY), asked(), "remote_denied"),
    "a policy that cannot be read": (Policy(closed=True), asked("why?", "src/cart.py"), "local_only"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return shop(tmp_path_factory.mktemp("ws"))


def routed(policy: Policy, *models: str) -> Policy:
    """The policy with a rule above all others."""
    return replace(policy, rules=(rule("all", *models, priority=0), *policy.rules))


@pytest.mark.parametrize("why", SHUT)
def test_what_must_stay_here_goes_to_local_models_alone(world: World, why: str) -> None:
    """Each remote model is skipped by name, a local one serves, and without one the refusal has its own code."""
    policy, request, code = SHUT[why]
    route = answer(world, routed(policy, REMOTE, OTHER, SMALL), request).route
    assert (chosen(route), route.fallback_used) == (SMALL, True)
    assert losses(route) == [(REMOTE, code), (OTHER, code)]
    error = refused(world, routed(policy, REMOTE, OTHER), request)
    assert error.code == "local_model_required"
    assert losses(error) == [(REMOTE, code), (OTHER, code)]


@pytest.mark.parametrize("why", SHUT)
@pytest.mark.parametrize(
    "more", [{}, {"providers": ()}, {"failed": (FailedModel(REMOTE, "rate_limited"),)}], ids=["", "no key", "failed"]
)
def test_a_remote_override_never_beats_privacy(world: World, why: str, more: dict[str, object]) -> None:
    """It is refused as not allowed, whatever else is wrong with it: a key or a second try would not help."""
    policy, request, code = SHUT[why]
    error = refused(world, policy, replace(request, model=REMOTE, **more))  # type: ignore[arg-type]
    assert error.code == "override_not_allowed"
    assert len(losses(error)) == 1
    assert more or losses(error) == [(REMOTE, code)]
    assert SECRET not in f"{error.message}{error.remedy}{error.details}"
    assert chosen(answer(world, policy, replace(request, model=SMALL)).route) == SMALL


def test_local_models_that_cannot_serve_are_no_outage(world: World) -> None:
    """The remote model of the route works, so privacy is what leaves none; without remote ones, it is not."""
    request = asked(
        "why?", AUTH, failed=(FailedModel(LOCAL, "provider_unavailable"), FailedModel(SMALL, "rate_limited"))
    )
    policy = Policy(restricted_paths=RESTRICTED)
    error = refused(world, routed(policy, LOCAL, REMOTE, SMALL), request)
    assert error.code == "local_model_required"
    assert losses(error) == [
        (LOCAL, "provider_unavailable"), (REMOTE, "local_only"), (SMALL, "rate_limited"),
    ]  # fmt: skip
    assert refused(world, routed(policy, LOCAL, SMALL), request).code == "fallback_exhausted"


def test_a_local_rule_restricts_its_own_chain(world: World) -> None:
    """Also for paths that nothing else restricts, and for no other rule's turns."""
    mine = rule("mine", REMOTE, OTHER, SMALL, local_only=True, paths=("src/auth/**",))
    policy = Policy(rules=(mine,), default=DefaultRoute(REMOTE))
    route = answer(world, policy, asked("what is new?", "src/auth/none.py")).route
    assert (chosen(route), losses(route)) == (SMALL, [(REMOTE, "local_only"), (OTHER, "local_only")])
    assert route.skipped[0].reason == "It is a remote model, and rule mine allows local models only."
    assert chosen(answer(world, policy, asked("why?", "src/cart.py")).route) == REMOTE


def test_a_users_setting_gives_way_to_the_local_default(world: World) -> None:
    """A setting is no route of a policy: its remote model steps aside, and the route says why."""
    world.settings = Settings(model=REMOTE)
    try:
        route = answer(world, Policy(restricted_paths=RESTRICTED), asked("why?", AUTH)).route
    finally:
        world.settings = Settings()
    assert (chosen(route), route.fallback_used) == (LOCAL, True)
    assert route.chosen_by == "local default, as 1 required item is restricted"
    assert losses(route) == [(REMOTE, "local_only")]


def test_what_may_be_dropped_blocks_no_remote_model(world: World) -> None:
    """The file that search found stays here with its reason, and the answer goes on without it."""
    policy = chain(REMOTE, restricted_paths=RESTRICTED)
    bundle = answer(world, policy, asked("how does login work with add_item?"))
    assert (chosen(bundle.route), bundle.route.skipped) == (REMOTE, ())
    rows = [row for row in bundle.manifest.items if row.path == AUTH]
    assert rows
    assert all(row.outcome is Outcome.EXCLUDED and "restricted for remote models" in row.reasons for row in rows)
    assert SECRET not in f"{bundle.prompt}{bundle.blocks}"
    assert any(block.path == "src/cart.py" for block in bundle.blocks)
    local = answer(world, chain(LOCAL, restricted_paths=RESTRICTED), asked("how does login work with add_item?"))
    assert SECRET in f"{local.prompt}"


# --- asked first ---


def test_remote_disclosure_is_asked_about_when_the_policy_says_so(world: World) -> None:
    """For remote models alone, and also when the request named the model."""
    ask = chain(REMOTE, LOCAL, remote_mode=RemoteMode.ASK)
    assert answer(world, ask, asked()).route.approvals == ("remote_disclosure",)
    assert answer(world, ask, asked(model=OTHER)).route.approvals == ("remote_disclosure",)
    assert answer(world, ask, asked(local_only=True)).route.approvals == ()
    assert answer(world, chain(REMOTE), asked()).route.approvals == ()


def test_a_turn_that_may_cost_more_than_its_rule_allows_is_asked_about(world: World) -> None:
    """The longest reply counts; to the digit of the limit nothing is asked."""
    model = DeclaredModel("acme/seer", window=50_000, max_output=1_000, input_price="1", output_price="10")

    def limited(limit: str) -> Policy:
        return Policy(rules=(rule("r", "acme/seer", cost_limit=limit),), models=(model,))

    bundle = answer(world, limited("9"), asked())
    cost, used = bundle.route.cost, bundle.manifest.tokens.total
    assert cost is not None
    assert cost.high == f"{(used + 10_000) / 1e6:.6f}".rstrip("0")
    assert cost.low == f"{(used + 2_560) / 1e6:.6f}".rstrip("0")
    assert bundle.route.approvals == ()
    assert answer(world, limited(cost.high), asked()).route.approvals == ()
    below = f"{(used + 9_999) / 1e6:.6f}"
    bundle = answer(world, replace(limited(below), remote_mode=RemoteMode.ASK), asked())
    assert bundle.route.approvals == ("cost_limit", "remote_disclosure")
    assert bundle.route.cost is not None
    assert bundle.route.cost.limit == below


def test_a_limit_without_a_price_is_asked_about_and_told(world: World) -> None:
    """What cannot be shown to stay under the limit may not; a model on this machine costs nothing."""
    model = DeclaredModel("acme/seer", window=50_000)
    policy = Policy(rules=(rule("r", "acme/seer", cost_limit="1"),), models=(model,))
    bundle = answer(world, policy, asked())
    assert (bundle.route.cost, bundle.route.approvals) == (None, ("cost_limit",))
    assert "cost_unknown" in {problem.code for problem in bundle.problems}
    bundle = answer(world, Policy(rules=(rule("r", LOCAL, cost_limit="0"),)), asked())
    assert bundle.route.cost is not None
    assert (bundle.route.cost.high, bundle.route.approvals) == ("0", ())
    assert "cost_unknown" not in {problem.code for problem in bundle.problems}


# --- nothing of it is kept or repeated ---


def test_the_path_that_met_a_rule_is_told_and_never_kept(world: World) -> None:
    """The one who asks reads it in the route; a record names the rule, and no place that is restricted."""
    mine = rule("logins", LOCAL, local_only=True, paths=("src/auth/**",))
    request = asked("why?", AUTH, supplied=(Supplied("s", "t", "x", path="src/auth/deep.py"),))
    bundle = answer(world, Policy(rules=(mine,)), request)
    assert AUTH in bundle.route.chosen_by
    record = make_record("id", Question(request, world.snapshot(), bundle), b"key")
    assert "rule logins" in record.document
    assert "src/auth" not in record.document


KEYS = (
    "sk-proj-a1b2c3d4e5f6a7b8c9", "sk-ant-api03-abcdef", "AIzaSyD4iE2xVSpkLLOXoyqT-AuPwKDv", "gsk_abcd1234efgh5678",
    "0123456789abcdef0123456789abcdef", "eyJhbGciOiJIUzI1NiJ9.e30.abc", "a1b2c3d4e5f6a7b8", "acme=sk-1", "x" * 33,
)  # fmt: skip


@pytest.mark.parametrize("text", KEYS)
def test_a_key_in_place_of_a_provider_is_refused_and_not_repeated(text: str) -> None:
    """Neither whole nor in part."""
    with pytest.raises(InvalidRequest) as caught:
        provider_name(text, "params.providers[0]")
    assert caught.value.message.startswith("params.providers[0]: ")
    assert text[:6] not in f"{caught.value.message}{caught.value.remedy}{caught.value.details}"


@pytest.mark.parametrize("text", ["openai", " OpenAI ", "llama.cpp", "azure-openai", "together_ai", "fireworks-ai"])
def test_names_of_providers_are_taken_in_lower_case(text: str) -> None:
    """With the marks that names in use have."""
    assert provider_name(text, "p") == text.strip().lower()
