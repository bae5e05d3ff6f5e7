"""Which model answers, through the whole line: rules, availability, capabilities, windows and fallbacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from gathering import World, run
from routing import (
    AUTH,
    LOCAL,
    LONG,
    OTHER,
    REMOTE,
    SECRET,
    SMALL,
    THINKING,
    answer,
    asked,
    chain,
    chosen,
    losses,
    refused,
    rule,
    shop,
)

from haversack import pipeline
from haversack.types import (
    ActiveDocument,
    Bundle,
    Capability,
    Confidence,
    DeclaredModel,
    DefaultRoute,
    Effort,
    FailedModel,
    Intent,
    Policy,
    Request,
    RoutingRule,
    Settings,
    Supplied,
)

# The worked example of the specification.
CLAUDE, THINKER = "anthropic/claude-sonnet", "openai/gpt-5.5-thinking"
EXAMPLE = Policy(
    rules=(
        RoutingRule(
            "auth edits use Claude", CLAUDE, (THINKER,), 30, Effort.HIGH, intent=Intent.EDIT, paths=("src/auth/**",)
        ),
    ),
    default=DefaultRoute("openai/gpt-5.5-mini", (LOCAL,)),
)
BOTH_KEYS = ("anthropic", "openai")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return shop(tmp_path_factory.mktemp("ws"))


# --- the worked example ---


def test_an_edit_of_an_auth_path_uses_the_rules_model_at_high_effort(world: World) -> None:
    """Rule, effort and task are told, and nothing was skipped."""
    route = answer(world, EXAMPLE, asked("fix the login", AUTH, intent=Intent.EDIT, providers=BOTH_KEYS)).route
    assert (chosen(route), route.effort, route.task_type) == (CLAUDE, Effort.HIGH, Intent.EDIT)
    assert route.chosen_by == ("rule auth edits use Claude: the task is edit and src/auth/login.py is in src/auth/**")
    assert (route.fallback_used, route.override_used, route.skipped) == (False, False, ())


def test_without_the_key_of_its_provider_the_fallback_serves(world: World) -> None:
    """The fallback is told as one, and whose key was missing."""
    route = answer(world, EXAMPLE, asked("fix the login", AUTH, intent=Intent.EDIT, providers=("openai",))).route
    assert (chosen(route), route.fallback_used, route.effort) == (THINKER, True, Effort.HIGH)
    assert losses(route) == [(CLAUDE, "missing_credentials")]
    assert route.skipped[0].reason == "It needs a key of anthropic, and the client holds none."


def test_a_chat_about_something_else_takes_the_default_route(world: World) -> None:
    """No rule matches, so the policy's default serves at medium effort."""
    route = answer(world, EXAMPLE, asked(providers=BOTH_KEYS)).route
    assert (chosen(route), route.chosen_by) == ("openai/gpt-5.5-mini", "the policy's default route")
    assert (route.effort, route.fallback_used) == (Effort.MEDIUM, False)


def test_a_restricted_auth_path_shuts_out_both_remote_models(world: World) -> None:
    """With no local model on the route it is refused as what it is, and nothing of the file is told."""
    policy = Policy(rules=EXAMPLE.rules, default=EXAMPLE.default, restricted_paths=("src/auth/",))
    error = refused(world, policy, asked("fix the login", AUTH, intent=Intent.EDIT, providers=BOTH_KEYS))
    assert error.code == "local_model_required"
    assert losses(error) == [(CLAUDE, "local_only"), (THINKER, "local_only")]
    assert error.details["required_restricted"] == 1
    assert SECRET not in f"{error.message}{error.remedy}{error.details}"


def test_a_local_fallback_serves_the_restricted_auth_path(world: World) -> None:
    """The same edit, with a local model that can think at the end of the route."""
    with_local = RoutingRule(
        "auth", CLAUDE, (THINKER, LOCAL, THINKING), effort=Effort.HIGH, intent=Intent.EDIT, paths=("src/auth/**",)
    )
    policy = Policy(rules=(with_local,), restricted_paths=("src/auth/",))
    bundle = answer(world, policy, asked("fix the login", AUTH, intent=Intent.EDIT, providers=()))
    assert chosen(bundle.route) == THINKING
    assert [code for _, code in losses(bundle.route)] == [
        "missing_credentials", "missing_credentials", "missing_capability",
    ]  # fmt: skip
    assert any(SECRET in block.text for block in bundle.blocks)


# --- precedence ---


def test_the_request_beats_every_rule(world: World) -> None:
    """No rule is asked when the request names a model, not even for effort or gates."""
    policy = chain(OTHER, REMOTE)
    route = answer(world, policy, asked(model=LOCAL)).route
    assert (chosen(route), route.override_used, route.fallback_used) == (LOCAL, True, False)
    assert route.chosen_by == "the request names the model"
    assert route.skipped == ()


def test_rules_go_by_priority_then_specificity_then_order(world: World) -> None:
    """The first of them that matches decides alone."""
    paths = ("src/**",)
    rules = [
        rule("none", LOCAL),
        rule("intent", LOCAL, intent=Intent.CHAT),
        rule("path", LOCAL, paths=paths),
        rule("both", LOCAL, paths=paths, intent=Intent.CHAT),
        rule("both again", LOCAL, paths=paths, intent=Intent.CHAT),
        rule("early", LOCAL, priority=1),
        rule("earliest for another task", LOCAL, priority=0, intent=Intent.PLAN),
        rule("earliest with a bad glob", LOCAL, priority=0, paths=("a[",)),
    ]
    request = asked("how does it work?", "src/cart.py", intent=Intent.CHAT)

    def decides() -> str:
        return answer(world, Policy(rules=tuple(rules)), request).route.matched_rule

    for name in ("early", "both", "both again", "path", "intent", "none"):
        assert decides() == f"rule {name}"
        rules = [each for each in rules if each.name != name]


def test_the_kind_of_work_is_as_the_request_says_or_else_as_it_reads(world: World) -> None:
    """Rules go by it, the route tells it, and the manifest says how sure that is and why; sureness gates nothing."""
    policy = Policy(rules=(rule("edits", SMALL, intent=Intent.EDIT),), default=DefaultRoute(LOCAL))
    for said, task, model in (
        (None, Intent.EDIT, SMALL),
        (Intent.EDIT, Intent.EDIT, SMALL),
        (Intent.CHAT, Intent.CHAT, LOCAL),
    ):
        bundle = answer(world, policy, asked("fix the bug in add_item", intent=said))
        assert (bundle.route.task_type, chosen(bundle.route)) == (task, model)
        judged = bundle.manifest.classification
        assert (judged["intent"], judged["confidence"] in tuple(Confidence), bool(judged["reason"])) == (
            task,
            True,
            True,
        )


def test_whatever_the_user_points_at_is_a_path_for_rules(world: World) -> None:
    """A mention, the open file, an item of another tool, a header of its diff; what search finds is none."""
    policy = Policy(rules=(rule("auth", SMALL, paths=("src/auth/**",)),), default=DefaultRoute(LOCAL))
    diff = "diff --git a/src/auth/login.py b/src/auth/login.py\n@@ -1 +1 @@\n-a\n+b\n"
    pointing = [
        asked("why?", AUTH),
        asked(f"why does @{AUTH} do that?"),
        asked("why?", active=ActiveDocument(world.uri("shop", AUTH))),
        asked("why?", supplied=(Supplied("1", "ticket", "text", path=AUTH),)),
        asked("why?", supplied=(Supplied("1", "patch", diff),)),
    ]
    assert [answer(world, policy, each).route.matched_rule for each in pointing] == ["rule auth"] * len(pointing)
    bundle = answer(world, policy, asked("how does login work?"))
    assert any(block.path == AUTH for block in bundle.blocks)
    assert chosen(bundle.route) == LOCAL


def test_the_effort_of_the_request_beats_that_of_the_rule(world: World) -> None:
    """And a rule's effort asks the model for thinking."""
    policy = Policy(rules=(rule("hard", LOCAL, THINKING, effort=Effort.XHIGH),))
    assert chosen(answer(world, policy, asked()).route) == THINKING
    route = answer(world, policy, asked(effort=Effort.LOW)).route
    assert (chosen(route), route.effort) == (LOCAL, Effort.LOW)


def test_rules_without_a_match_and_without_a_default_are_no_route(world: World) -> None:
    """No model is guessed; the user's setting, where there is one, is no guess."""
    policy = Policy(rules=(rule("plans", LOCAL, intent=Intent.PLAN),))
    error = refused(world, policy, asked(intent=Intent.CHAT))
    assert (error.code, error.details["intent"]) == ("no_route", "chat")
    world.settings = Settings(model=SMALL)
    try:
        assert chosen(answer(world, policy, asked(intent=Intent.CHAT)).route) == SMALL
    finally:
        world.settings = Settings()


def test_without_any_route_the_keyless_local_default_serves(world: World) -> None:
    """It needs no key, so it serves a client that holds none."""
    route = answer(world, Policy(), asked(providers=())).route
    assert (chosen(route), route.model.local, route.model.requires_key) == (LOCAL, True, False)


# --- why a candidate loses ---


@pytest.mark.parametrize("reason", ["rate_limited", "provider_unavailable", "request_timeout"])
def test_a_model_that_failed_is_not_asked_again(world: World, reason: str) -> None:
    """The next one serves, each time anew by the same rule, until none is left."""
    policy = chain(REMOTE, OTHER, LOCAL)
    failed: list[FailedModel] = []
    for model in (REMOTE, OTHER, LOCAL):
        route = answer(world, policy, asked(failed=tuple(failed))).route
        assert chosen(route) == model
        assert losses(route) == [(each.model, reason) for each in failed]
        assert route.fallback_used is bool(failed)
        failed.append(FailedModel(model, reason))
    error = refused(world, policy, asked(failed=tuple(failed)))
    assert error.code == "fallback_exhausted"
    assert losses(error) == [(each.model, reason) for each in failed]


def test_a_model_that_failed_is_known_by_other_spellings_of_its_name(world: World) -> None:
    """Letter case and a missing provider hide no failure."""
    for name in ("OpenAI/GPT-4o", "gpt-4o"):
        route = answer(world, chain(REMOTE, LOCAL), asked(failed=(FailedModel(name, "rate_limited"),))).route
        assert losses(route) == [(REMOTE, "rate_limited")]


def test_a_model_that_nobody_knows_is_skipped_and_says_how_to_declare_it(world: World) -> None:
    """Once declared, it serves."""
    route = answer(world, chain("acme/seer", LOCAL), asked()).route
    assert losses(route) == [("acme/seer", "unknown_model")]
    assert "`models`" in route.skipped[0].reason
    declared = DeclaredModel("acme/seer", window=50_000, max_output=2_000)
    route = answer(world, chain("acme/seer", LOCAL, models=(declared,)), asked()).route
    assert (chosen(route), route.window, route.model.max_output) == ("acme/seer", 50_000, 2_000)


def test_a_declaration_says_key_and_capabilities_and_never_where_a_model_runs(world: World) -> None:
    """A remote model is not made local by being described."""
    mine = DeclaredModel(
        "acme/seer", window=50_000, capabilities=(Capability.IMAGES,), requires_key=False, input_price="1"
    )
    policy = chain("acme/seer", models=(mine,))
    route = answer(world, policy, asked(providers=(), needs=(Capability.IMAGES,))).route
    assert (chosen(route), route.model.local, route.cost) == ("acme/seer", False, None)
    assert refused(world, policy, asked(needs=(Capability.TOOLS,))).code == "missing_capability"
    assert refused(world, policy, asked(local_only=True)).code == "local_model_required"


def test_a_model_without_what_the_rule_insists_on_is_skipped(world: World) -> None:
    """Needs of the turn and the rule's are one set, and the reason names what is lacking."""
    policy = Policy(rules=(rule("r", SMALL, OTHER, REMOTE, requires=(Capability.JSON_OUTPUT,)),))
    route = answer(world, policy, asked(tools_tokens=10)).route
    assert chosen(route) == REMOTE
    assert [(skip.code, skip.reason) for skip in route.skipped] == [
        ("missing_capability", "It lacks tools."),
        ("missing_capability", "It lacks jsonOutput."),
    ]


def test_a_prompt_is_held_against_the_window_less_the_reply(world: World) -> None:
    """A prompt that would fill a window to the brim goes to the next model, and the numbers are told."""

    def sized(window: int) -> Bundle:
        model = DeclaredModel("ollama/tight", window=window, max_output=8_000)
        return answer(world, chain("ollama/tight", REMOTE, models=(model,)), asked("explain it", LONG))

    needed = sized(200_000).manifest.tokens.total
    bundle = sized(needed + 200)  # room for the prompt, and not for the shortest reply
    assert (chosen(bundle.route), bundle.route.fallback_used) == (REMOTE, True)
    assert losses(bundle.route) == [("ollama/tight", "context_window_exceeded")]
    assert "tokens are needed" in bundle.route.skipped[0].reason
    bundle = sized(needed + 300)
    assert chosen(bundle.route) == "ollama/tight"
    assert bundle.manifest.tokens.total + 256 <= bundle.manifest.tokens.total + bundle.route.max_output
    assert bundle.manifest.tokens.total + bundle.route.max_output <= bundle.route.window


# --- an override has no fallback ---


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked(model=REMOTE, providers=("anthropic",)), "missing_credentials"),
        (asked(model=SMALL, needs=(Capability.TOOLS,)), "missing_capability"),
        (asked("explain it", LONG, model=SMALL), "context_window_exceeded"),
        (asked(model=REMOTE, failed=(FailedModel(REMOTE, "rate_limited"),)), "rate_limited"),
        (asked(model=REMOTE, failed=(FailedModel(REMOTE, "request_timeout"),)), "request_timeout"),
        (asked(model=REMOTE, failed=(FailedModel(REMOTE, "provider_unavailable"),)), "provider_unavailable"),
        (asked(model=REMOTE, local_only=True), "override_not_allowed"),
    ],
)
def test_an_override_that_cannot_serve_is_refused_with_its_own_code(world: World, request_: Request, code: str) -> None:
    """Nobody is asked in its place, although rule, default and setting have models."""
    policy = Policy(rules=(rule("all", LOCAL, THINKING),), default=DefaultRoute(LOCAL))
    error = refused(world, policy, request_)
    assert error.code == code
    assert losses(error) == [(request_.model, "local_only" if code == "override_not_allowed" else code)]
    assert error.message
    assert error.remedy


def test_a_route_of_one_model_is_refused_with_that_models_code(world: World) -> None:
    """Of a longer one, that all are exhausted, with the reason of each in the message too."""
    assert refused(world, chain(REMOTE), asked(providers=())).code == "missing_credentials"
    assert refused(world, chain("acme/seer"), asked()).code == "unknown_model"
    assert refused(world, chain(SMALL), asked("explain it", LONG)).code == "context_window_exceeded"
    error = refused(world, chain(REMOTE, "acme/seer", SMALL), asked("explain it", LONG, providers=()))
    assert error.code == "fallback_exhausted"
    assert losses(error) == [
        (REMOTE, "missing_credentials"), ("acme/seer", "unknown_model"), (SMALL, "context_window_exceeded"),
    ]  # fmt: skip
    assert all(name in error.message for name in (REMOTE, "acme/seer", SMALL))


def test_the_requests_own_budget_is_no_reason_to_ask_another_model(world: World) -> None:
    """A larger window would not help, so the refusal comes at once."""
    error = refused(world, chain(SMALL, REMOTE), asked("explain it", LONG, budget_tokens=500))
    assert error.code == "context_window_exceeded"
    assert "skipped" not in error.details


# --- degraded ---


def test_a_degraded_run_lacks_only_what_a_turn_can_do_without(world: World) -> None:
    """Thinking may be missing when the policy says so, tools may not; it is told what is missing."""
    plain, allowing = chain(LOCAL), chain(LOCAL, allow_degraded=True)
    assert refused(world, plain, asked(effort=Effort.HIGH)).code == "missing_capability"
    route = answer(world, allowing, asked(effort=Effort.HIGH)).route
    assert (chosen(route), route.degraded) == (LOCAL, (Capability.REASONING,))
    error = refused(world, allowing, asked(effort=Effort.HIGH, needs=(Capability.IMAGES,)))
    assert losses(error) == [(LOCAL, "missing_capability")]
    assert answer(world, allowing, asked()).route.degraded == ()


def test_what_a_rule_insists_on_is_never_done_without(world: World) -> None:
    """Not even when the policy allows degraded runs."""
    gated = rule("r", LOCAL, requires=(Capability.REASONING,))
    error = refused(world, Policy(rules=(gated,), allow_degraded=True), asked())
    assert error.code == "missing_capability"


def test_a_fallback_that_can_do_everything_goes_before_a_degraded_first_choice(world: World) -> None:
    """Without one, the first choice runs degraded, and why the others lost is told."""
    high = asked(effort=Effort.HIGH)
    route = answer(world, chain(LOCAL, THINKING, allow_degraded=True), high).route
    assert (chosen(route), route.degraded) == (THINKING, ())
    assert losses(route) == [(LOCAL, "missing_capability")]
    route = answer(
        world, chain(LOCAL, "ollama/deepseek-r1:7b", allow_degraded=True), asked(effort=Effort.HIGH, tools_tokens=5)
    ).route
    assert (chosen(route), route.degraded, route.fallback_used) == (LOCAL, (Capability.REASONING,), False)
    assert losses(route) == [("ollama/deepseek-r1:7b", "missing_capability")]


# --- preview ---


def test_a_preview_decides_the_same_and_shows_no_text(world: World) -> None:
    """Route, cost, approvals and rows are those of the answer; refusals are the same too."""
    world.policy = Policy(rules=(rule("r", OTHER, REMOTE, LOCAL, cost_limit="0.000001"),))
    request = asked("explain it", AUTH, providers=("openai",))
    full = run(pipeline.run(request, world.workspace()))
    shown = run(pipeline.preview(request, world.workspace()))
    assert shown.route == full.route
    assert shown.route.approvals == ("cost_limit",)
    assert [(row.id, row.outcome, row.reasons) for row in shown.manifest.items] == [
        (row.id, row.outcome, row.reasons) for row in full.manifest.items
    ]
    assert SECRET in str(full.blocks)
    assert SECRET not in f"{shown.prompt}{shown.blocks}{shown.history}"
    assert not any(block.text for block in shown.blocks)


def test_equal_questions_get_equal_routes(world: World, tmp_path: Path) -> None:
    """In another copy of the workspace too: nothing but the arguments decides."""
    other = shop(tmp_path)
    policy = Policy(rules=(rule("a", OTHER, REMOTE, LOCAL, paths=("src/**",)),), default=DefaultRoute(LOCAL))
    request = asked("why?", "src/cart.py", providers=("openai",))
    routes = {answer(each, policy, request).route for each in (world, other, world)}
    assert len(routes) == 1
