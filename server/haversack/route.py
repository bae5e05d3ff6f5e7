"""Chooses the model a prompt is made for, and says why each model before it lost.

An override stands alone. Else the rule that matches names a model and its fallbacks, else the default route does, else
the user's setting; with no routes at all the local default serves. `candidates` checks each model by what is known of
it, `settle` takes the first one that the prompt really fits. Both are functions of their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from haversack.policy import catalogue, costs
from haversack.policy.catalogue import full_name
from haversack.policy.demands import Barrier, Demands, barrier
from haversack.policy.refusals import refusal
from haversack.policy.rules import Match, match
from haversack.policy.turn import needs, turn_paths
from haversack.room import effective_window, output_cap, reply_reserve
from haversack.types import (
    Effort,
    HaversackError,
    InvalidRequest,
    Marked,
    Plan,
    Policy,
    Problem,
    RemoteMode,
    Request,
    Route,
    RoutingRule,
    Skip,
    Snapshot,
)

T = TypeVar("T")

TOO_LARGE = "context_window_exceeded"


@dataclass(frozen=True, slots=True)
class Option:
    """One model of the chain. Without a `loss` it may serve; with one and `route.degraded`, if no other model can."""

    route: Route
    loss: Skip | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """The models in the order they are tried, and why only local ones may serve, if that is so."""

    options: tuple[Option, ...]
    request: Request
    policy: Policy
    barrier: Barrier | None = None
    cost_limit: str = ""


def candidates(plan: Plan, marked: Sequence[Marked], snapshot: Snapshot) -> Chain:
    """Every model that may come into question, judged by all but the size of the prompt.

    Raises HaversackError `no_route` when there are routes, and none for this turn.
    """
    request, policy, settings = plan.request, snapshot.policy, snapshot.settings
    way = _way(plan, marked, snapshot)
    shut = barrier(request, marked, policy, way.rule)
    names, n_named = list(way.names), way.n_named
    if way.gives_way and shut is not None and not catalogue.resolve(names[0], settings, policy.models).local:
        names.append(catalogue.load().default_model)
    effort = request.effort or (way.rule.effort if way.rule is not None else Effort.MEDIUM)
    gate = way.rule.requires if way.rule is not None else ()
    demands = Demands(request, policy, settings, shut, needs(request, effort, way.rule), gate, way.by_policy)
    options: dict[str, Option] = {}
    for at, name in enumerate(names):
        model = catalogue.resolve(name, settings, policy.models)
        if full_name(model) in options:
            continue
        window, source = effective_window(model, at < n_named, request, settings)
        chosen_by = way.chosen_by if at < len(way.names) or shut is None else f"local default, as {shut.why}"
        judgement = demands.judge(name, model)
        route = Route(
            model=model,
            window=window,
            window_source=source,
            reply_reserve=reply_reserve(model, window),
            override_used=way.is_override,
            matched_rule=chosen_by,
            matched_because=way.because if chosen_by == way.chosen_by else "",
            fallback_used=bool(options),
            task_type=plan.intent,
            effort=effort,
            degraded=judgement.degraded,
        )
        options[full_name(model)] = Option(route, judgement.loss)
    limit = way.rule.cost_limit if way.rule is not None else ""
    return Chain(tuple(options.values()), request, policy, shut, limit)


def settle(chain: Chain, fit: Callable[[Route], T]) -> tuple[Route, T]:
    """The first route whose prompt fits, and what `fit` made of it; it raises `context_window_exceeded` for no fit.

    Models that can do all that is asked go first, also fallbacks: whoever allows a degraded run wants an answer rather
    than none, not a poorer one rather than that of the next model on the list.
    """
    refusals: dict[int, HaversackError] = {}
    able = [at for at, option in enumerate(chain.options) if option.loss is None]
    degraded = [at for at, option in enumerate(chain.options) if option.loss is not None and option.route.degraded]
    for at in (*able, *degraded):
        route = chain.options[at].route
        try:
            fitted = fit(route)
        except HaversackError as error:
            if error.code != TOO_LARGE or _is_own_cap(error, chain.request):
                raise
            refusals[at] = error
            continue
        last = len(chain.options) if route.degraded else at
        return replace(route, skipped=_losses(chain, refusals, last, at)), fitted
    skipped = _losses(chain, refusals, len(chain.options), -1)
    raise refusal([option.route for option in chain.options], skipped, chain.barrier, refusals.get(0))


def priced(route: Route, chain: Chain, prompt_tokens: int) -> Route:
    """The route with the reply's limit, what the turn may cost, and what the user must be asked before it is sent."""
    longest = output_cap(route, prompt_tokens)
    cost = costs.estimate(route.model, prompt_tokens, longest, chain.cost_limit)
    approvals = ("cost_limit",) if costs.needs_approval(cost, chain.cost_limit) else ()
    if chain.policy.remote_mode is RemoteMode.ASK and not route.model.local:
        approvals += ("remote_disclosure",)
    return replace(route, max_output=longest, cost=cost, approvals=approvals)


def cost_unknown(route: Route, chain: Chain) -> tuple[Problem, ...]:
    """A Problem when there is a limit and no price to hold against it."""
    if not chain.cost_limit or route.cost is not None:
        return ()
    return (
        Problem(
            "route",
            "cost_unknown",
            f"The rule's cost limit cannot be checked: no price is known of {full_name(route.model)}.",
            "Declare inputPrice and outputPrice of the model in the policy.",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """Who names the models. `n_named` of them somebody chose; `gives_way`: a local default may stand in."""

    names: tuple[str, ...]
    chosen_by: str
    because: str = ""
    rule: RoutingRule | None = None
    is_override: bool = False
    by_policy: bool = False
    gives_way: bool = False
    n_named: int = 1


def _way(plan: Plan, marked: Sequence[Marked], snapshot: Snapshot) -> _Way:
    explicit, policy, settings = (plan.request.model or "").strip(), snapshot.policy, snapshot.settings
    if explicit:
        # Longer than any name in use; without a limit a hostile one would be echoed into every manifest.
        if len(explicit) > 200 or not explicit.isprintable():
            raise InvalidRequest("`model` is not a model name.", "Give `provider/model`, as `openai/gpt-4o`.")
        return _Way((explicit,), "the request names the model", is_override=True)
    found = match(policy.rules, plan.intent, turn_paths(plan, marked, snapshot)) if policy.rules else None
    if found is not None:
        return _by_policy(found.rule.model, found.rule.fallbacks, found)
    if policy.default is not None:
        return _by_policy(policy.default.model, policy.default.fallbacks, None)
    if settings.model:
        return _Way((settings.model,), "setting haversack.model", gives_way=True)
    if policy.rules:
        raise HaversackError(
            "no_route",
            f"None of the policy's {len(policy.rules):,} rules is for this request ({plan.intent.value}), and there is "
            "no default route.",
            "Add `default` to the policy, set haversack.model, or name a model in the request.",
            intent=plan.intent.value,
        )
    return _Way((catalogue.load().default_model,), "local default", n_named=0)


def _by_policy(model: str, fallbacks: tuple[str, ...], found: Match | None) -> _Way:
    names = (model, *fallbacks)
    if found is None:
        return _Way(names, "the policy's default route", by_policy=True, n_named=len(names))
    return _Way(names, f"rule {found.rule.name}", found.reason, found.rule, by_policy=True, n_named=len(names))


def _is_own_cap(error: HaversackError, request: Request) -> bool:
    """Whether the request's own budget is what is too small: no other model has more of it."""
    return request.budget_tokens is not None and error.details.get("budget") == request.budget_tokens


def _losses(chain: Chain, refusals: Mapping[int, HaversackError], last: int, chosen: int) -> tuple[Skip, ...]:
    """Why each model before place `last` lost, but for the chosen one."""
    found: list[Skip] = []
    for at, option in enumerate(chain.options[:last]):
        if at == chosen:
            continue
        if at in refusals:
            found.append(Skip(full_name(option.route.model), TOO_LARGE, _too_large(refusals[at])))
        elif option.loss is not None:
            found.append(option.loss)
    return tuple(found)


def _too_large(error: HaversackError) -> str:
    needed, room = error.details.get("needed"), error.details.get("budget")
    if isinstance(needed, int) and isinstance(room, int):
        return f"{needed:,} tokens are needed, and {room:,} fit beside the reply."
    return error.message
