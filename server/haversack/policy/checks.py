"""What is wrong between the parts of a policy: models nobody knows, rules that compete, routes that can't serve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from haversack.policy import catalogue
from haversack.policy.document import Document
from haversack.policy.findings import Finding, nearest, shown, span_of
from haversack.policy.overlap import may_overlap
from haversack.policy.rules import glob_pattern, specificity
from haversack.types import Policy, RemoteMode, RoutingRule, Settings

# Pairs of patterns that are compared in one look for competing rules: a tenth of a second's work.
MAX_COMPARED = 20_000

# Services that hand on the models of many makers.
_HOSTS = frozenset(
    {
        "anyscale",
        "azure",
        "bedrock",
        "cerebras",
        "cloudflare",
        "copilot",
        "deepinfra",
        "fireworks",
        "github",
        "groq",
        "huggingface",
        "hyperbolic",
        "nebius",
        "novita",
        "nvidia",
        "openrouter",
        "perplexity",
        "replicate",
        "sambanova",
        "together",
        "vercel",
        "vertex",
        "vertexai",
        "watsonx",
    }
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A rule that is used, and where it stands."""

    rule: RoutingRule
    document: Document
    place: str


@dataclass(frozen=True, slots=True)
class _Named:
    """A model's name where a document names it in a route; `local` in that of a local-only rule."""

    name: str
    document: Document
    place: str
    local: bool


def check(
    policy: Policy, rules: Sequence[Placed], documents: Sequence[Document], settings: Settings
) -> Iterator[Finding]:
    """Findings on the whole, each in the document that can mend it."""
    named = tuple(_named(documents))
    yield from _unknown(named, policy, settings)
    yield from _remote(named, policy, settings)
    yield from _ambiguous(rules)
    if documents and policy.default is None and not policy.closed:
        message = "The policy has no default route: where no rule matches, the model of the settings is asked."
        yield _at(documents[-1], "no_default_route", "default", message, 'Add "default" to choose one here.')


def _at(document: Document, code: str, place: str, message: str, remedy: str) -> Finding:
    return Finding(code, message, remedy, place, document.lines.range(span_of(place, document.spans)), document.layer)


def _named(documents: Sequence[Document]) -> Iterator[_Named]:
    for document in documents:
        for name, place in document.named_models:
            yield _Named(name, document, place, place.partition(".")[0] in document.local_places)


def _unknown(named: Sequence[_Named], policy: Policy, settings: Settings) -> Iterator[Finding]:
    known = catalogue.load()
    providers = {family.provider for family in known.families} | known.local_providers | _HOSTS
    declared = {model.name.casefold() for model in policy.models}
    providers |= {name.split("/")[0] for name in declared}
    for each in named:
        if each.name.casefold() in declared:
            continue
        provider = each.name.split("/")[0].lower()
        if provider not in providers:
            meant = nearest(provider, providers)
            hint = f'Did you mean "{meant}"? ' if meant else ""
            message = f"{each.place}: nobody knows the provider {shown(provider)}; it counts as remote."
            yield _at(each.document, "unknown_provider", each.place, message, f"{hint}{_declare(each.name)}")
        elif not catalogue.is_known(each.name, policy.models, settings.custom_windows):
            message = f"{each.place}: the catalogue has no model {shown(each.name)}; a small window is assumed."
            yield _at(each.document, "unknown_model", each.place, message, _declare(each.name))


def _declare(name: str) -> str:
    entry = f'{{"name": {_quoted(name)}, "window": 128000}}'
    return f'Check its spelling, or declare it under "models" with its window: {entry}.'


def _quoted(name: str) -> str:
    return f'"{shown(name)[1:-1]}"'


def _remote(named: Sequence[_Named], policy: Policy, settings: Settings) -> Iterator[Finding]:
    """Models that leave this machine where that is ruled out."""
    for each in named:
        if catalogue.resolve(each.name, settings).local:
            continue
        if each.local:
            message = f"{each.place}: the rule is local-only, and {shown(each.name)} is a remote model."
            yield _at(each.document, "remote_in_local_rule", each.place, message, "Name a local model, as ollama/….")
        elif policy.remote_mode is RemoteMode.DENY or policy.local_only:
            ruled = "localOnly is true" if policy.local_only else 'privacy.remote.mode is "deny"'
            message = f"{each.place}: {shown(each.name)} is a remote model and is never asked, since {ruled}."
            yield _at(each.document, "remote_denied", each.place, message, "Name a local model.")


def _ambiguous(rules: Sequence[Placed]) -> Iterator[Finding]:
    """Rules of equal rank that may match the same turn: only their order decides between them.

    Rules on paths compete when one file can match both. That a turn may bring a file for each is no fault of theirs.
    """
    ranks: dict[tuple[object, ...], list[Placed]] = defaultdict(list)
    for each in rules:
        ranks[(each.rule.priority, specificity(each.rule), each.rule.intent)].append(each)
    budget = [MAX_COMPARED]
    for peers in ranks.values():
        for number, each in enumerate(peers):
            rival = next((other for other in peers[:number] if _compete(other.rule, each.rule, budget)), None)
            if budget[0] < 0:
                message = "There are too many rules of one rank to compare all of them with each other."
                remedy = "Give rules priorities of their own."
                yield _at(each.document, "rules_not_compared", each.place, message, remedy)
                return
            if rival is not None:
                yield _at(
                    each.document,
                    "ambiguous_rules",
                    f"{each.place}.name",
                    f"The rule {shown(each.rule.name)} may match where {shown(rival.rule.name)} of the "
                    f"{rival.document.layer} does, with the same priority and as specific; the earlier one wins.",
                    "Give them different priorities, or an intent or paths that tell them apart.",
                )


def _compete(one: RoutingRule, other: RoutingRule, budget: list[int]) -> bool:
    if not one.paths:
        return True
    for left in filter(glob_pattern, one.paths):
        for right in filter(glob_pattern, other.paths):
            budget[0] -= 1
            if budget[0] < 0:
                return False
            if may_overlap(left, right):
                return True
    return False
