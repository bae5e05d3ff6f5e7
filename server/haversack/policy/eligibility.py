"""Which supplied items may be served: judged by what their owners say, fitted into their budget, each with one verdict.

Pure: no clock, no policy service and no classifier. All facts come with the request, so equal requests get equal
verdicts. Cost grows with the number of items and the length of their texts, never with their product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace

from haversack.policy.canonical import NotCanonical, identity
from haversack.policy.entries import Key, entry_identity, key_of, n_bytes_of, served_text
from haversack.types import (
    Authorization,
    BinaryContent,
    Classification,
    Content,
    Eligibility,
    EligibilityScope,
    HaversackError,
    Priority,
    Reason,
    ReferenceContent,
    Replacement,
    Selection,
    Supplied,
    SuppliedBudget,
    TextContent,
    Treatment,
    Verdict,
)

Count = Callable[[str], int]
"""Tokens of a text."""

_RANK = {priority: rank for rank, priority in enumerate(Priority)}
_LEVEL = {classification: level for level, classification in enumerate(Classification)}
# An item's name in an error; it is the caller's own word and may be of any length.
MAX_SHOWN_ID = 100


def qualify(
    items: Sequence[Supplied], scope: EligibilityScope | None, count: Count
) -> tuple[tuple[Supplied, ...], Selection | None]:
    """The items in their order, each with its verdict and the text that may be served: of a refused one nothing is
    left. Also what those that qualified use together, when there is a scope.

    Raises HaversackError when an item that is required, and may be served, does not fit the budget.
    """
    entries = [_entry(place, item, scope) for place, item in enumerate(items)]
    shelf = _Shelf(scope.budget if scope else None, count)
    restricted = {key for entry in entries if entry.is_restricted for key in entry.keys}
    selected = sorted((each for each in entries if not each.reasons), key=_order)
    selected = [entry for entry in selected if shelf.take(entry)]
    judged = tuple(_judged(entry, restricted) for entry in entries)
    return judged, _selection(selected, scope, shelf) if scope else None


@dataclass(slots=True)
class _Entry:
    """An item on its way. `content` is what may be served: the item's own, or its replacement."""

    place: int
    item: Supplied
    priority: Priority
    content: Content
    tokens: int | None
    identity: str = ""
    selected: str = ""
    key: Key | None = None
    keys: tuple[Key, ...] = ()  # of everything that came with the item
    text: str = ""
    reasons: tuple[Reason, ...] = ()
    note: str = ""

    @property
    def is_restricted(self) -> bool:
        eligibility = self.item.eligibility
        return eligibility is not None and eligibility.classification is Classification.RESTRICTED


def _entry(place: int, item: Supplied, scope: EligibilityScope | None) -> _Entry:
    content = item.content or TextContent(item.text)
    entry = _Entry(place, item, Priority.REQUIRED if item.required else item.priority, content, item.tokens)
    if item.fault:
        entry.reasons, entry.note = (Reason.MALFORMED,), item.fault
        return entry
    try:
        entry.identity = entry_identity(content, item.provenance, entry.priority, item.tokens)
        _judge(entry, scope)
        entry.selected = entry.identity
        if entry.content is not content:
            entry.selected = entry_identity(entry.content, item.provenance, entry.priority, entry.tokens)
        entry.key = key_of(entry.content)
    except NotCanonical as error:
        entry.reasons, entry.note = (Reason.MALFORMED,), f"supplied[{place}]: {error}"
    return entry


def _judge(entry: _Entry, scope: EligibilityScope | None) -> None:
    """Gives the entry its reasons, and the content of its replacement where one stands in."""
    eligibility = entry.item.eligibility
    own = key_of(entry.content)
    entry.keys = (own,)
    if eligibility is None:
        return
    entry.reasons = failing(eligibility, scope)
    replacement = eligibility.redacted
    if replacement is None or scope is None:
        return
    entry.keys = (own, key_of(replacement.content))
    if own in entry.keys[1:] or not _may_replace(replacement, entry):
        entry.reasons = (*entry.reasons, Reason.REDACTION)
    else:
        entry.content, entry.tokens = replacement.content, replacement.tokens


def failing(eligibility: Eligibility, scope: EligibilityScope | None) -> tuple[Reason, ...]:
    """Every statement that speaks against this use, in the order of the table; whether a replacement fits aside."""
    if scope is None:
        return (Reason.NO_SCOPE,)
    redact = eligibility.treatment is Treatment.REDACT
    checks = (
        (Reason.SOURCE_AUTHORIZATION, eligibility.authorization is Authorization.DENIED),
        (Reason.TENANT, bool(eligibility.tenants) and scope.tenant not in eligibility.tenants),
        (Reason.PURPOSE, scope.purpose not in eligibility.purposes),
        (Reason.CLASSIFICATION, _LEVEL[eligibility.classification] > _LEVEL[scope.max_classification]),
        (Reason.FRESHNESS, scope.as_of >= eligibility.fresh_until),
        (Reason.INJECTION, eligibility.treatment is Treatment.DENY),
        (Reason.REDACTION, redact and eligibility.redacted is None),
    )
    return tuple(reason for reason, fails in checks if fails)


def _may_replace(replacement: Replacement, entry: _Entry) -> bool:
    """Whether it has the priority and the provenance of what it replaces; where it says nothing, it has."""
    same_priority = replacement.priority in (None, entry.priority)
    return same_priority and replacement.provenance in (None, entry.item.provenance)


def _order(entry: _Entry) -> tuple[int, int, int]:
    eligibility = entry.item.eligibility
    return _RANK[entry.priority], eligibility.precedence if eligibility else 0, entry.place


@dataclass(slots=True)
class _Shelf:
    """What is taken so far. Items that do not fit are passed over, later ones still have their turn."""

    budget: SuppliedBudget | None
    count: Count
    n_entries: int = 0
    n_bytes: int = 0
    tokens: int = 0
    all_priced: bool = True
    names: dict[Key, str] = field(default_factory=dict[Key, str])

    def take(self, entry: _Entry) -> bool:
        """Whether the entry is in now; else it has its reason. Raises HaversackError when it is required."""
        assert entry.key is not None
        first = self.names.get(entry.key)
        if first is not None:
            entry.reasons, entry.note = (Reason.DUPLICATE,), f"same content as {first}"
            return False
        text = served_text(entry.content)
        if self.budget is not None and not self._fits(entry, text, self.budget):
            return False
        self.names[entry.key] = entry.item.title or entry.item.id
        entry.text = text
        return True

    def _fits(self, entry: _Entry, text: str, budget: SuppliedBudget) -> bool:
        n_bytes = n_bytes_of(entry.content)
        if self.n_entries >= budget.max_entries:
            return _refuse(entry, Reason.SUPPLIED_BUDGET, f"comes after {self.n_entries:,} entries, all that may be in")
        if self.n_bytes + n_bytes > budget.max_bytes:
            return _refuse(entry, Reason.SUPPLIED_BUDGET, _lack(n_bytes, budget.max_bytes - self.n_bytes, "bytes"))
        # Text costs what we count, whatever is said of it. Data is not served as text, so the caller's word counts,
        # but never less than its description costs.
        is_data = isinstance(entry.content, BinaryContent | ReferenceContent)
        is_priced = not is_data or entry.tokens is not None
        if budget.max_tokens is not None and not is_priced:
            return _refuse(entry, Reason.MISSING_TOKENS, "states no tokens, which a budget in tokens needs of data")
        tokens = max(self.count(text), entry.tokens or 0) if is_data else self.count(text)
        if budget.max_tokens is not None and self.tokens + tokens > budget.max_tokens:
            return _refuse(entry, Reason.SUPPLIED_BUDGET, _lack(tokens, budget.max_tokens - self.tokens, "tokens"))
        self.n_entries += 1
        self.n_bytes += n_bytes
        self.tokens += tokens
        self.all_priced = self.all_priced and is_priced
        return True


def _lack(needed: int, left: int, unit: str) -> str:
    return f"needs {needed:,} {unit} where {left:,} are left"


def _refuse(entry: _Entry, reason: Reason, note: str) -> bool:
    if entry.priority is Priority.REQUIRED:
        raise HaversackError(
            "supplied_over_budget",
            f"The required supplied item {entry.item.id[:MAX_SHOWN_ID]!r} does not fit its budget: it {note}.",
            "Raise the budget in `eligibility`, state the item's tokens, or make fewer items required.",
            item=f"supplied[{entry.place}]",
        )
    entry.reasons, entry.note = (reason,), note
    return False


def _judged(entry: _Entry, restricted: Set[Key]) -> Supplied:
    eligibility = entry.item.eligibility
    verdict = Verdict(
        place=entry.place,
        priority=entry.priority,
        entry=entry.identity,
        selected="" if entry.reasons else entry.selected,
        reasons=entry.reasons,
        restricted=entry.is_restricted or not restricted.isdisjoint(entry.keys),
        note=entry.note,
        eligibility=replace(eligibility, redacted=None) if eligibility and eligibility.redacted else eligibility,
    )
    required = entry.priority is Priority.REQUIRED
    return replace(
        entry.item,
        text=entry.text,
        required=required,
        content=None,
        provenance=None,
        eligibility=None,
        verdict=verdict,
    )


def _selection(entries: Sequence[_Entry], scope: EligibilityScope, shelf: _Shelf) -> Selection:
    budget = {"maxEntries": scope.budget.max_entries, "maxBytes": scope.budget.max_bytes}
    usage = {"entries": shelf.n_entries, "bytes": shelf.n_bytes}
    if scope.budget.max_tokens is not None:
        budget["maxTokens"] = scope.budget.max_tokens
    if shelf.all_priced:
        usage["tokens"] = shelf.tokens
    chosen = identity(
        {"scope": dict(scope.scope), "budget": budget, "usage": usage, "entries": [each.selected for each in entries]}
    )
    return Selection(chosen, shelf.n_entries, shelf.n_bytes, usage.get("tokens"))
