"""Policy documents, weakest first, as one policy. A later document can only tighten what an earlier one says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from haversack.policy import checks
from haversack.policy.catalogue import resolve
from haversack.policy.document import Document, Kind
from haversack.policy.findings import Finding, problems_of, shown, span_of
from haversack.types import DeclaredModel, DefaultRoute, Policy, RemoteMode, RoutingRule, Settings

T = TypeVar("T")

_STRICTNESS = {RemoteMode.ALLOW: 0, RemoteMode.ASK: 1, RemoteMode.DENY: 2}


@dataclass(frozen=True, slots=True)
class Merged:
    """The policy, its layers weakest first, and what is wrong with them."""

    policy: Policy
    findings: tuple[Finding, ...]
    layers: tuple[str, ...] = ()


def merge(documents: Sequence[Document], settings: Settings, *, trusted: bool = True) -> Merged:
    """One policy of `documents`. Of an untrusted workspace only what tightens is taken."""
    state = _State()
    taken_documents: list[Document] = []
    for document in documents:
        taken = document
        if document.kind is Kind.WORKSPACE and not trusted:
            taken = _tightening_part(document, state)
        state.findings.extend(document.findings)
        _take(taken, state, settings)
        taken_documents.append(taken)
    policy = _settled(state)
    state.findings.extend(checks.check(policy, state.rules, taken_documents, settings))
    findings = tuple(state.findings)
    layers = tuple(document.layer for document in documents)
    return Merged(replace(policy, problems=problems_of(findings)), findings, layers)


def _settled(state: _State) -> Policy:
    policy, default = state.policy, state.policy.default
    return replace(
        policy,
        rules=tuple(replace(rule, fallbacks=_others(rule.model, rule.fallbacks)) for rule in policy.rules),
        default=None if default is None else replace(default, fallbacks=_others(default.model, default.fallbacks)),
        restricted_paths=distinct(policy.restricted_paths, state.held),
        closed=state.closed,
    )


def _others(model: str, fallbacks: tuple[str, ...]) -> tuple[str, ...]:
    """The fallbacks once each, without the model itself: asking again what has just failed helps nobody."""
    by_name = {model.casefold(): model}
    for name in fallbacks:
        by_name.setdefault(name.casefold(), name)
    return tuple(by_name.values())[1:]


@dataclass(slots=True)
class _State:
    """What the documents so far say."""

    policy: Policy = field(default_factory=Policy)
    degraded: bool | None = None
    recorded: bool | None = None
    local_only: bool | None = None
    mode: RemoteMode | None = None
    held: tuple[str, ...] = ()
    closed: bool = False
    rules: list[checks.Placed] = field(default_factory=list[checks.Placed])
    names: dict[str, tuple[Document, str]] = field(default_factory=dict[str, tuple[Document, str]])
    findings: list[Finding] = field(default_factory=list[Finding])

    def note(self, code: str, document: Document, place: str, message: str, remedy: str) -> None:
        self.findings.append(located(code, document, place, message, remedy))


def located(code: str, document: Document, place: str, message: str, remedy: str) -> Finding:
    """A finding at `place` of a document."""
    where = document.lines.range(span_of(place, document.spans))
    return Finding(code, message, remedy, place, where, document.layer)


def distinct(*lists: Iterable[T]) -> tuple[T, ...]:
    """The lists joined; what stands twice stays once, where it stood first."""
    return tuple(dict.fromkeys(each for items in lists for each in items))


def _tightening_part(document: Document, state: _State) -> Document:
    """What an untrusted workspace may say: restrictions, and the paths that its rules leave to local models."""
    left_out = [
        name
        for name, given in (("rules", document.rules), ("default", document.default), ("models", document.models))
        if given
    ]
    if left_out:
        state.note(
            "not_trusted",
            document,
            left_out[0],
            f"The workspace is not trusted, so these parts of its policy are not used: {', '.join(left_out)}.",
            "Trust the workspace to use its routes; what it restricts counts all the same.",
        )
    local_paths = tuple(path for rule in document.rules if rule.local_only for path in rule.paths)
    return replace(
        document,
        rules=(),
        rule_places=(),
        named_rules=(),
        default=None,
        models=(),
        model_places=(),
        held_paths=(*document.held_paths, *local_paths),
        allow_degraded=False if document.allow_degraded is False else None,
        keep_restricted=False if document.keep_restricted is False else None,
    )


def _take(document: Document, state: _State, settings: Settings) -> None:
    policy = state.policy
    state.closed |= document.closed
    state.held = distinct(state.held, document.held_paths)
    state.degraded = _switch(document, state, "allowDegraded", state.degraded, document.allow_degraded)
    state.recorded = _switch(document, state, "records.keepRestricted", state.recorded, document.keep_restricted)
    state.local_only = _local_only(document, state)
    state.mode = _mode(document, state)
    state.policy = replace(
        policy,
        rules=_rules(document, state),
        models=_models(document, state),
        default=_default(document, state, settings),
        allow_degraded=bool(state.degraded),
        record_restricted=bool(state.recorded),
        local_only=bool(state.local_only),
        remote_mode=state.mode or RemoteMode.ALLOW,
        restricted_paths=distinct(policy.restricted_paths, document.restricted_paths),
        blocked_paths=distinct(policy.blocked_paths, document.blocked_paths),
        privileged_paths=distinct(policy.privileged_paths, document.privileged_paths),
        strategy_paths=distinct(policy.strategy_paths, document.strategy_paths),
        tenants=_tenants(policy, document),
    )


def _switch(document: Document, state: _State, place: str, earlier: bool | None, given: bool | None) -> bool | None:
    """A switch that loosens: once a layer has said no, it stays off."""
    if given is None:
        return earlier
    if given and earlier is False:
        _loosening(document, state, place, f"{place} is false in an earlier layer and stays so.")
        return False
    return given


def _local_only(document: Document, state: _State) -> bool | None:
    if document.local_only is False and state.local_only:
        _loosening(document, state, "localOnly", "localOnly is true in an earlier layer and stays so.")
        return True
    return document.local_only if document.local_only is not None else state.local_only


def _mode(document: Document, state: _State) -> RemoteMode | None:
    given, earlier = document.remote_mode, state.mode
    if given is None or earlier is None:
        return given or earlier
    if _STRICTNESS[given] < _STRICTNESS[earlier]:
        place = "privacy.remote.mode"
        _loosening(document, state, place, f"{place} is {earlier.value!r} in an earlier layer and stays so.")
        return earlier
    return given


def _default(document: Document, state: _State, settings: Settings) -> DefaultRoute | None:
    """The later default counts, but no remote one in place of one that keeps everything here."""
    given, earlier = document.default, state.policy.default
    if given is None or earlier is None:
        return given or earlier
    if _is_local(earlier, settings) and not _is_local(given, settings):
        message = "The default route of an earlier layer has local models only; this one has remote models."
        _loosening(document, state, "default", message)
        return earlier
    return given


def _is_local(route: DefaultRoute, settings: Settings) -> bool:
    return all(resolve(name, settings).local for name in (route.model, *route.fallbacks))


def _rules(document: Document, state: _State) -> tuple[RoutingRule, ...]:
    usable = dict(zip(document.rule_places, document.rules, strict=True))
    for name, place in document.named_rules:
        rule = usable.get(place)
        first = state.names.setdefault(name, (document, place))
        if first == (document, place):
            if rule is not None:
                state.rules.append(checks.Placed(rule, document, place))
            continue
        if rule is not None and rule.local_only:  # it is not used, what it keeps here stays here
            state.held = distinct(state.held, rule.paths)
        state.note(
            "duplicate_rule",
            document,
            f"{place}.name",
            f"A rule called {shown(name)} stands in the {first[0].layer} already; this one is not used.",
            "Give it another name.",
        )
    return tuple(each.rule for each in state.rules)


def _models(document: Document, state: _State) -> tuple[DeclaredModel, ...]:
    found = list(state.policy.models)
    for model, place in zip(document.models, document.model_places, strict=True):
        if any(each.name.casefold() == model.name.casefold() for each in found):
            state.note(
                "duplicate_model",
                document,
                f"{place}.name",
                f"The model {shown(model.name)} is declared already; this declaration is not used.",
                "Remove one of them.",
            )
        else:
            found.append(model)
    return tuple(found)


def _tenants(policy: Policy, document: Document) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tenants = dict(policy.tenants)
    for name, globs in document.tenants:
        tenants[name] = distinct(tenants.get(name, ()), globs)
    return tuple(tenants.items())


def _loosening(document: Document, state: _State, place: str, message: str) -> None:
    state.note("loosening", document, place, message, "Later layers can only tighten: change the earlier one.")
