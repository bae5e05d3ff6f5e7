"""Whether a model may serve, and what is said when none can: each code, its sentence and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from line_builders import make_candidate
from routing import LOCAL, OTHER, REMOTE, SMALL, rule

from haversack.policy import catalogue
from haversack.policy.demands import Barrier, Demands, Judgement, barrier
from haversack.policy.refusals import refusal
from haversack.types import (
    Capability,
    DeclaredModel,
    FailedModel,
    HaversackError,
    Marked,
    Policy,
    RemoteMode,
    Request,
    Route,
    Settings,
    Skip,
)

HELD = Barrier("local_only", "2 required items are restricted", 2)
ASKED = Barrier("local_only", "the request asks for local models only")


def route(name: str, **changes: Any) -> Route:
    return Route(catalogue.resolve(name, Settings()), 8_192, "model", 0, **changes)


def lost(name: str, code: str = "local_only", reason: str = "It is far away.") -> Skip:
    return Skip(name, code, reason)


def said(*skipped: Skip) -> list[dict[str, str]]:
    return [{"model": each.model, "code": each.code, "reason": each.reason} for each in skipped]


@pytest.mark.parametrize(("shut", "more"), [(HELD, True), (ASKED, False)])
def test_an_override_that_is_remote_is_not_allowed(shut: Barrier, more: bool) -> None:
    """It says which model, why, and to leave files out only where files are why."""
    skip = lost(REMOTE)
    error = refusal([route(REMOTE, override_used=True)], [skip], shut, None)
    assert (error.code, error.message) == ("override_not_allowed", f"{REMOTE} is a remote model, and {shut.why}.")
    assert error.details == {"skipped": said(skip), "required_restricted": shut.held}
    assert error.remedy.startswith("Choose a local model")
    assert ("restricted files" in error.remedy) is more


@pytest.mark.parametrize(("shut", "more"), [(HELD, True), (ASKED, False)])
def test_a_route_with_a_remote_model_needs_a_local_one(shut: Barrier, more: bool) -> None:
    """Wherever in the route the remote one stands; of each model it says why it lost."""
    skipped = (lost(LOCAL, "missing_capability", "It lacks tools."), lost(REMOTE))
    error = refusal([route(LOCAL), route(REMOTE)], skipped, shut, None)
    assert error.code == "local_model_required"
    assert error.message == (
        f"Only a local model may serve, as {shut.why}, and none can. {LOCAL}: It lacks tools. {REMOTE}: It is far away."
    )
    assert error.details == {"skipped": said(*skipped), "required_restricted": shut.held}
    assert error.remedy.startswith("Add a local model to the route")
    assert ("restricted files" in error.remedy) is more


def test_a_barrier_is_no_reason_where_every_model_is_local() -> None:
    """Then each lost for what it lacks: an override too, and a route of several."""
    lacking = [lost(name, "missing_capability", "It lacks tools.") for name in (LOCAL, SMALL)]
    assert refusal([route(LOCAL, override_used=True)], lacking[:1], HELD, None).code == "missing_capability"
    assert refusal([route(LOCAL), route(SMALL)], lacking, HELD, None).code == "fallback_exhausted"


def test_without_a_barrier_a_remote_model_lost_for_its_own_reason() -> None:
    """A route of one has that model's code, sentence and remedy; an override too."""
    skip = lost(REMOTE, "missing_credentials", "It needs a key of openai.")
    for changes in ({}, {"override_used": True}):
        error = refusal([route(REMOTE, **changes)], [skip], None, None)
        assert (error.code, error.message) == (skip.code, f"{REMOTE} cannot serve. It needs a key of openai.")
        assert "key" in error.remedy
        assert error.details == {"skipped": said(skip)}
    assert refusal([route(REMOTE)], [lost(REMOTE, "of_the_client")], None, None).remedy == ""


def test_what_was_raised_for_the_only_model_is_the_error() -> None:
    """With what it said of itself, and the list of those tried."""
    cause = HaversackError("context_window_exceeded", "Too long.", "Shorten it.", needed=9, budget=5)
    error = refusal([route(REMOTE)], [lost(REMOTE, cause.code)], None, cause)
    assert error is cause
    assert error.details == {"needed": 9, "budget": 5, "skipped": said(lost(REMOTE, cause.code))}


def test_a_route_that_is_used_up_tells_of_each_model() -> None:
    """By number, and one after the other."""
    skipped = (lost(REMOTE, "rate_limited", "Too often."), lost(OTHER, "request_timeout", "Too late."))
    error = refusal([route(REMOTE), route(OTHER)], skipped, None, None)
    assert error.code == "fallback_exhausted"
    assert error.message == (f"None of the 2 models of the route can serve. {REMOTE}: Too often. {OTHER}: Too late.")
    assert error.details == {"skipped": said(*skipped)}
    assert error.remedy


# --- one model ----------------------------------------------------------------------------------------------------


def judged(name: str, request: Request | None = None, policy: Policy | None = None, **changes: Any) -> Judgement:
    fields: dict[str, Any] = {"barrier": None, "wanted": (), "gate": (), "must_be_known": False} | changes
    given = policy or Policy()
    demands = Demands(request or Request("q"), given, Settings(), **fields)
    return demands.judge(name, catalogue.resolve(name, Settings(), given.models))


def loss(judgement: Judgement) -> tuple[str, str]:
    assert judgement.loss is not None
    return judgement.loss.code, judgement.loss.reason


def test_a_model_that_may_serve_lost_nothing() -> None:
    """Neither for want of a key that the client holds, nor where keys are not told."""
    assert judged(REMOTE) == Judgement()
    assert judged(REMOTE, Request("q", providers=("openai",))) == Judgement()
    assert judged(LOCAL, Request("q", providers=()), barrier=HELD) == Judgement()


def test_a_name_of_a_policy_has_to_be_known() -> None:
    """Of a request or a setting it need not be."""
    assert loss(judged("acme/oracle", must_be_known=True))[0] == "unknown_model"
    assert judged("acme/oracle").loss is None
    assert judged(REMOTE, must_be_known=True).loss is None
    declared = Policy(models=(DeclaredModel("acme/oracle", window=9_000),))
    assert judged("acme/oracle", policy=declared, must_be_known=True).loss is None


def test_why_a_model_cannot_be_used_is_said_with_its_name() -> None:
    """A missing key names the provider, a barrier says why it is there."""
    found = judged(REMOTE, Request("q", providers=("anthropic",)))
    assert found.loss is not None
    assert found.loss.model == REMOTE
    assert loss(found)[0] == "missing_credentials"
    assert "a key of openai" in loss(found)[1]
    assert loss(judged(REMOTE, barrier=HELD)) == ("local_only", f"It is a remote model, and {HELD.why}.")


@pytest.mark.parametrize("reason", ["rate_limited", "provider_unavailable", "request_timeout", "of_the_client"])
def test_a_model_that_failed_before_is_passed_over(reason: str) -> None:
    """Whatever case it is written in; one of another name or provider is not."""
    code, sentence = loss(judged(REMOTE, Request("q", failed=(FailedModel("openai/GPT-4o", reason),))))
    assert code == reason
    assert "earlier try" in sentence
    assert (sentence == "It failed on an earlier try.") is (reason == "of_the_client")
    for other in ("openai/gpt-4", "openrouter/gpt-4o"):
        assert judged(REMOTE, Request("q", failed=(FailedModel(other, reason),))).loss is None


def test_what_a_model_lacks_is_listed() -> None:
    """All of it; a degraded run is offered only by a policy, and only for what a turn can do without."""
    wanted = (Capability.REASONING, Capability.MEMORY)
    allowed = Policy(allow_degraded=True)
    found = judged(REMOTE, wanted=wanted)
    assert found.loss == Skip(REMOTE, "missing_capability", "It lacks reasoning and memory.")
    assert found.degraded == ()
    assert judged(REMOTE, policy=allowed, wanted=wanted).degraded == wanted
    assert judged(REMOTE, policy=allowed, wanted=wanted, gate=wanted[1:]).degraded == ()
    assert judged(SMALL, policy=allowed, wanted=(Capability.REASONING, Capability.TOOLS)).degraded == ()


def test_the_users_own_choice_is_believed_but_for_what_a_rule_insists_on() -> None:
    """Of a model that nothing is known of."""
    wanted = (Capability.REASONING, Capability.TOOLS)
    assert judged("acme/oracle", wanted=wanted).loss is None
    assert loss(judged("acme/oracle", wanted=wanted, gate=wanted[:1]))[1] == "It lacks reasoning."


@pytest.mark.parametrize(
    ("request_", "policy", "given", "code", "why"),
    [
        (Request("q", local_only=True), Policy(), rule(), "local_only", "the request"),
        (Request("q"), Policy(local_only=True), rule(), "local_only", "the policy"),
        (Request("q"), Policy(), rule("secret-work", local_only=True), "local_only", "rule secret-work"),
        (Request("q"), Policy(remote_mode=RemoteMode.DENY), None, "remote_denied", "the policy denies"),
    ],
)
def test_a_barrier_says_who_put_it_there(request_: Request, policy: Policy, given: Any, code: str, why: str) -> None:
    """And it counts no files where none are why."""
    found = barrier(request_, (), policy, given)
    assert found is not None
    assert (found.code, found.held) == (code, 0)
    assert found.why.startswith(why)
    assert barrier(Request("q"), (), Policy(remote_mode=RemoteMode.ASK), rule()) is None


@pytest.mark.parametrize(("n_held", "why"), [(1, "1 required item is"), (2, "2 required items are")])
def test_restricted_items_are_counted_in_the_barrier(n_held: int, why: str) -> None:
    """They come before what request, policy and rule say: only leaving them out would help."""
    items = [Marked(make_candidate(str(at), None, text="x"), required=True, restricted=True) for at in range(n_held)]
    found = barrier(Request("q", local_only=True), items, Policy(local_only=True), None)
    assert found == Barrier("local_only", f"{why} restricted", n_held)
