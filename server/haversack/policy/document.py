"""One policy document, from its text or a request's object to typed values, with a finding for all that is wrong in it.

What cannot be understood never loosens: a rule with a fault is not used at all, since half of its conditions would
match too much, and a fault in what restricts (`privacy`, `documents`, `localOnly`) closes the document, so that
everything counts as restricted until it is mended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from haversack.policy.findings import Finding, Lines
from haversack.policy.json_reader import NOWHERE, Node, Span, Unreadable, read_text, read_value
from haversack.policy.values import KEYS, Notes, Values, inside
from haversack.types import DeclaredModel, DefaultRoute, Effort, Intent, RemoteMode, RoutingRule

VERSION = 1
# Characters of one document; a thousand rules with every key have half of that.
MAX_TEXT = 262_144
MAX_ITEMS = 1_000


class Kind(StrEnum):
    """Where a document comes from, weakest first."""

    USER = "user"
    WORKSPACE = "workspace"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Document:
    """What one document says. None: it says nothing about it. `closed`: it counts as restricting everything.

    `rule_places` has the place of each rule; `held_paths` are paths of local-only rules that are not used themselves.
    `named_rules`, `named_models` and `local_places` tell names and places of all rules, routes and local-only rules,
    also of faulty ones, so that one look finds everything.
    """

    kind: Kind
    layer: str  # how messages call it
    rules: tuple[RoutingRule, ...] = ()
    rule_places: tuple[str, ...] = ()
    held_paths: tuple[str, ...] = ()
    default: DefaultRoute | None = None
    models: tuple[DeclaredModel, ...] = ()
    model_places: tuple[str, ...] = ()
    allow_degraded: bool | None = None
    local_only: bool | None = None
    remote_mode: RemoteMode | None = None
    restricted_paths: tuple[str, ...] = ()
    blocked_paths: tuple[str, ...] = ()
    privileged_paths: tuple[str, ...] = ()
    strategy_paths: tuple[str, ...] = ()
    tenants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keep_restricted: bool | None = None
    named_rules: tuple[tuple[str, str], ...] = ()
    named_models: tuple[tuple[str, str], ...] = ()
    local_places: frozenset[str] = frozenset()
    closed: bool = False
    findings: tuple[Finding, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    lines: Lines = field(default_factory=lambda: Lines(""))


def parse_text(text: str, kind: Kind, layer: str) -> Document:
    """The document in `text`. Never raises for what is in it."""
    lines = Lines(text)
    if len(text) > MAX_TEXT:
        message = f"The policy has {len(text):,} characters; at most {MAX_TEXT:,} are read."
        return refused("too_large", message, kind, layer, lines=lines)
    body = text.removeprefix("\ufeff")
    offset = len(text) - len(body)  # a byte order mark, as some editors write
    try:
        root = read_text(" " * offset + body)
    except Unreadable as error:
        span = (error.offset, min(error.offset + 1, len(text)))
        return refused(error.code, error.message, kind, layer, span=span, lines=lines)
    return _read(root, kind, layer, lines)


def parse_value(value: object, kind: Kind, layer: str) -> Document:
    """The same for an object that came without text. Its findings have a place and no position."""
    try:
        root = read_value(value)
    except Unreadable as error:
        return refused(error.code, error.message, kind, layer)
    return _read(root, kind, layer, Lines(""))


def refused(
    code: str, message: str, kind: Kind, layer: str, *, span: Span = NOWHERE, lines: Lines | None = None
) -> Document:
    """A document of which nothing is used."""
    lines = lines or Lines("")
    finding = Finding(
        code, f"{message} Until it is mended, every file counts as restricted.", _MEND, "", lines.range(span), layer
    )
    return Document(kind, layer, closed=True, findings=(finding,), lines=lines)


_MEND = "Correct the policy; docs/policy.md describes it, and `haversack policy --schema` prints its JSON schema."


def _read(root: Node, kind: Kind, layer: str, lines: Lines) -> Document:
    notes = Notes(layer, lines)
    values = Values(notes)
    values.look_for_secrets(root)
    fields = values.fields(root, "", KEYS[""])
    if fields is None or not _version_known(fields.get("version"), values):
        return Document(kind, layer, closed=True, findings=notes.found(), spans=notes.spans, lines=lines)
    values.text(fields.get("$schema"), "$schema")
    rules, rule_places, held = _rules(fields.get("rules"), values)
    models, model_places = _models(fields.get("models"), values)
    privacy = values.fields(fields.get("privacy"), "privacy", KEYS["privacy"], guards=True) or {}
    remote = values.fields(privacy.get("remote"), "privacy.remote", KEYS["privacy.remote"], guards=True) or {}
    documents = values.fields(fields.get("documents"), "documents", KEYS["documents"], guards=True) or {}
    records = values.fields(fields.get("records"), "records", KEYS["records"]) or {}
    allow_degraded = values.flag(fields.get("allowDegraded"), "allowDegraded")
    keep_restricted = values.flag(records.get("keepRestricted"), "records.keepRestricted")
    document = Document(
        kind,
        layer,
        rules=rules,
        rule_places=rule_places,
        held_paths=held,
        default=_default(fields.get("default"), values),
        models=models,
        model_places=model_places,
        # A switch that loosens and cannot be read is off.
        allow_degraded=False if notes.faulty("allowDegraded") else allow_degraded,
        local_only=values.flag(fields.get("localOnly"), "localOnly", guards=True),
        remote_mode=values.choice(remote.get("mode"), "privacy.remote.mode", RemoteMode, guards=True),
        restricted_paths=values.privacy_globs(privacy.get("restrictedPaths"), "privacy.restrictedPaths"),
        blocked_paths=values.privacy_globs(remote.get("blockedPaths"), "privacy.remote.blockedPaths"),
        privileged_paths=values.privacy_globs(documents.get("privilegedPaths"), "documents.privilegedPaths"),
        strategy_paths=values.privacy_globs(documents.get("strategyPaths"), "documents.strategyPaths"),
        tenants=_tenants(documents.get("tenants"), values),
        keep_restricted=False if notes.faulty("records") else keep_restricted,
        spans=notes.spans,
        lines=lines,
    )
    return _finished(document, notes)


def _finished(document: Document, notes: Notes) -> Document:
    return replace(
        document,
        named_rules=tuple(notes.rules),
        named_models=tuple(each for each in notes.models if not each[1].startswith("models[")),
        local_places=frozenset(notes.local_rules),
        closed=notes.closed,
        findings=notes.found(),
    )


def _version_known(node: Node | None, values: Values) -> bool:
    if node is None:
        values.notes.add(
            "missing_version",
            "version",
            f"The policy does not say its version; {VERSION} is assumed.",
            f'Add "version": {VERSION}.',
        )
        return True
    if isinstance(node.scalar, bool) or node.scalar != VERSION:
        message = f"Only version {VERSION} of the format is known: nothing is used, every file counts as restricted."
        values.notes.add("unknown_version", "version", message, f'Write "version": {VERSION}, or update Haversack.')
        return False
    return True


def _default(node: Node | None, values: Values) -> DefaultRoute | None:
    fields = values.fields(node, "default", KEYS["default"])
    if fields is None:
        return None
    model = values.model(fields.get("model"), "default.model", needed=True)
    fallbacks = values.models(fields.get("fallbacks"), "default.fallbacks")
    values.check_fallbacks(model, fallbacks, "default.fallbacks")
    return None if values.notes.faulty("default") else DefaultRoute(model, fallbacks)


def _rules(node: Node | None, values: Values) -> tuple[tuple[RoutingRule, ...], tuple[str, ...], tuple[str, ...]]:
    rules: list[RoutingRule] = []
    places: list[str] = []
    held: list[str] = []
    # A list that is none may hold local-only rules.
    for place, each in values.entries(node, "rules", MAX_ITEMS, guards=True):
        rule = _rule(each, place, values, held)
        if rule is not None:
            rules.append(rule)
            places.append(place)
    return tuple(rules), tuple(places), tuple(held)


def _rule(node: Node, place: str, values: Values, held: list[str]) -> RoutingRule | None:
    notes = values.notes
    fields = values.fields(node, place, KEYS["rules[]"])
    if fields is None:
        notes.closed = True  # who knows what it was to keep
        return None
    local_only = values.flag(fields.get("localOnly"), f"{place}.localOnly")
    paths = values.globs(fields.get("paths"), f"{place}.paths")
    model = values.model(fields.get("model"), f"{place}.model", needed=True)
    fallbacks = values.models(fields.get("fallbacks"), f"{place}.fallbacks")
    rule = RoutingRule(
        name=values.text(fields.get("name"), f"{place}.name", needed=True),
        model=model,
        fallbacks=fallbacks,
        priority=values.whole(fields.get("priority"), f"{place}.priority", 0, 1_000_000, 1_000),
        effort=values.choice(fields.get("effort"), f"{place}.effort", Effort) or Effort.MEDIUM,
        intent=values.choice(fields.get("intent"), f"{place}.intent", Intent),
        paths=paths,
        local_only=local_only or False,
        requires=values.capabilities(fields.get("requiresCapabilities"), f"{place}.requiresCapabilities") or (),
        cost_limit=values.amount(fields.get("costLimit"), f"{place}.costLimit"),
    )
    if rule.name:
        notes.rules.append((rule.name, place))
    if rule.local_only:
        notes.local_rules.append(place)
    values.check_fallbacks(model, fallbacks, f"{place}.fallbacks")
    if not notes.faulty(place):
        return rule
    if local_only or notes.faulty(f"{place}.localOnly"):
        # The rule is not used, what it keeps here stays here; a condition that nobody can read may keep anything.
        held.extend(paths)
        notes.closed |= notes.faulty(f"{place}.paths")
    return None


def _models(node: Node | None, values: Values) -> tuple[tuple[DeclaredModel, ...], tuple[str, ...]]:
    found: list[DeclaredModel] = []
    places: list[str] = []
    for place, each in values.entries(node, "models", MAX_ITEMS):
        fields = values.fields(each, place, KEYS["models[]"])
        if fields is None:
            continue
        model = DeclaredModel(
            name=values.model(fields.get("name"), f"{place}.name", needed=True),
            window=values.whole(fields.get("window"), f"{place}.window", 1_000, 100_000_000, 0),
            max_output=values.whole(fields.get("maxOutput"), f"{place}.maxOutput", 1, 100_000_000, 0),
            capabilities=values.capabilities(fields.get("capabilities"), f"{place}.capabilities"),
            requires_key=values.flag(fields.get("requiresKey"), f"{place}.requiresKey"),
            input_price=values.amount(fields.get("inputPrice"), f"{place}.inputPrice"),
            output_price=values.amount(fields.get("outputPrice"), f"{place}.outputPrice"),
        )
        if not values.notes.faulty(place):
            found.append(model)
            places.append(place)
    return tuple(found), tuple(places)


def _tenants(node: Node | None, values: Values) -> tuple[tuple[str, tuple[str, ...]], ...]:
    members = values.members(node, "documents.tenants", guards=True)
    return tuple(
        (member.key, values.privacy_globs(member.value, inside("documents.tenants", member.key))) for member in members
    )
