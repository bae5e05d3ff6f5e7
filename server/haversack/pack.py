"""Packs scored candidates into a budget: required ones first, then tier by tier, each as rich as its worth pays for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from haversack.fitting import Entry, Measure, entries_of
from haversack.shelf import Shelf
from haversack.templates.chat import Counter
from haversack.types import Intent, Kind, OverBudget, Packed, Plan, Reason, Scored

CODE_KINDS = frozenset({Kind.SYMBOL, Kind.CODE, Kind.OUTLINE, Kind.SUPPLIED})


def _default_shares() -> Mapping[Kind, float]:
    return {
        # Code has no limit of its own: it is what questions are about.
        **dict.fromkeys(CODE_KINDS, 1.0),
        # The open file, when nobody asked for it by name, may not crowd out what search found.
        Kind.FILE: 0.5,
        Kind.SELECTION: 0.5,
        # A dozen messages with their lines; a broken build gives hundreds that say the same.
        Kind.DIAGNOSTIC: 0.12,
        # The last few edits tell what the user is at; older ones are in the files anyway.
        Kind.EDIT: 0.15,
        Kind.DIFF: 0.2,
        Kind.ARCHITECTURE: 0.12,
        Kind.OVERVIEW: 0.2,
        # Notes are short: a dozen fits into 8 % of a small budget.
        Kind.MEMORY: 0.08,
        Kind.TEAM: 0.05,
        Kind.RULE: 1.0,
    }


@dataclass(frozen=True, slots=True)
class PackConfig:
    """Every constant of packing. Shares are of the room: the budget less what required items take."""

    # What each kind that is not code may take before the others had their turn; what is unused is lent on. A kind
    # that is not named is not wanted at all, unless it is required.
    shares: Mapping[Kind, float] = field(default_factory=_default_shares)
    # The kind a question is about may take this much: the diff in a review, the overview in a broad question.
    lead_share: float = 0.6
    # Kept from code for the tiers after it, as far as they can use it; without it a full search leaves them nothing.
    late_share: float = 0.1
    # Outlines of the best files come first up to this share: naming the right file is worth more than a second body.
    # From 0.3 to 0.4 the packed files rise by 2 of 100 and the packed changes fall by 2 (benchmarks/localize.py).
    breadth_share: float = 0.4
    # One outline's part of the breadth: with 0.25 a few files take it all, and 3 of 100 changed files are missed.
    outline_share: float = 0.08
    # An outline cut below this many lines says little more than the file's name.
    min_outline_lines: int = 2
    # 0 ranks definitions by relevance alone, 1 by relevance a character; a little lets short ones win near-ties, at 0.3
    # long ones that matter lose.
    size_power: float = 0.1
    # One file's part of the room, so that a file which matches everything leaves space for the others.
    file_share: float = 0.6
    # Up to this many files of code, the limit above makes no sense: there is nothing else to leave space for.
    few_files: int = 2
    # One definition's part of the room; a longer one is served by its first lines.
    item_share: float = 0.35
    # Head lines of a long definition below this tell too little to be worth a block.
    min_head_lines: int = 6
    # Share of the best relevance below which code has too little to do with the question.
    floor: float = 0.05


def pack(
    scored: Sequence[Scored],
    plan: Plan,
    budget: int,
    counter: Counter,
    *,
    config: PackConfig = PackConfig(),
    remote: bool = True,
) -> Packed:
    """What goes into the prompt, costing at most `budget` tokens, and one decision for each of `scored`, in its order.

    Raises OverBudget when what is required does not fit even in its poorest forms. `remote`: the model runs elsewhere,
    so restricted candidates stay out.
    """
    shelf = Shelf(entries_of(scored), Measure(counter, _has_many_folders(scored)), budget)
    shelf.refuse(remote, frozenset(config.shares))
    _pack_required(shelf)
    room = budget - shelf.used
    late = _late_needs(shelf, plan, room, config)
    for tier in sorted({entry.scored.tier for entry in shelf.open()}):
        entries = [entry for entry in shelf.open() if entry.scored.tier == tier]
        pack_code([entry for entry in entries if entry.kind in CODE_KINDS], shelf, room, budget - late, config)
        _pack_others([entry for entry in entries if entry.kind not in CODE_KINDS], shelf, plan, room, config)
    missed: float | None = None
    for entry in shelf.open():  # what is unused is lent to whoever was held back by a share
        if _is_behind(entry, missed):
            continue
        if entry.reason is not Reason.BELOW_FLOOR:
            shelf.put_best(entry, budget)
        missed = _missed(entry, missed)
    return Packed(shelf.blocks(), shelf.decisions(), budget, shelf.used)


def _pack_required(shelf: Shelf) -> None:
    """Required items in full; while they do not fit, the largest that has a poorer form takes it.

    The order of shrinking does not depend on the budget, so a bigger budget only stops earlier.
    """
    shelf.fold_copies([entry for entry in shelf.entries if entry.required and not entry.closed])
    required = sorted((e for e in shelf.entries if e.required and not e.closed), key=lambda e: e.place)
    level = [0] * len(required)
    while True:
        chosen = [(entry, entry.forms[at]) for entry, at in zip(required, level, strict=True)]
        needed = shelf.cost_of_all(chosen)
        if needed <= shelf.budget:
            break
        alone = [shelf.measure.alone(entry.choice(form)) for entry, form in chosen]
        shrinkable = [at for at, entry in enumerate(required) if level[at] + 1 < len(entry.forms)]
        if not shrinkable:
            raise OverBudget(
                needed, shelf.budget, tuple((e.name, cost) for e, cost in zip(required, alone, strict=True))
            )
        level[max(shrinkable, key=lambda at: (alone[at], -at))] += 1
    for entry, form in chosen:
        shelf.put(entry, form)
        entry.reason = None if form is entry.forms[0] else Reason.OVER_BUDGET


def pack_code(entries: Sequence[Entry], shelf: Shelf, room: int, limit: int, config: PackConfig) -> None:
    """Code evidence in three passes: outlines for breadth, definitions for depth, then whatever still fits.

    `limit` is the level of `shelf.used` that code may not cross.
    """
    best = max((entry.relevance for entry in entries), default=0.0)
    for entry in entries:
        if entry.relevance < config.floor * best:
            entry.reason = Reason.BELOW_FLOOR
    wanted = [entry for entry in entries if entry.reason is not Reason.BELOW_FLOOR]
    outlines = [entry for entry in wanted if entry.kind is Kind.OUTLINE]
    outlines.sort(key=lambda entry: (entry.candidate.file_rank, entry.place))
    bodies = [entry for entry in wanted if entry.kind is not Kind.OUTLINE]
    bodies.sort(key=lambda entry: (-entry.relevance / max(1, entry.n_characters) ** config.size_power, entry.place))

    breadth = int(room * config.breadth_share)
    breadth_limit, outline_limit = min(limit, shelf.used + breadth), int(breadth * config.outline_share)
    for entry in outlines:
        shelf.put_best(entry, breadth_limit, item=outline_limit, min_lines=config.min_outline_lines)

    many_files = len({entry.key for entry in wanted}) > config.few_files
    file_limit = int(room * config.file_share) if many_files else None
    for entry in bodies:
        item = int(room * config.item_share)
        shelf.put_best(entry, limit, item=item, file=file_limit, min_lines=config.min_head_lines)

    held_back = [entry for entry in bodies if entry.reason is Reason.FILE_CAP]
    for entry in (*held_back, *outlines):
        shelf.put_best(entry, limit)


def _pack_others(entries: Sequence[Entry], shelf: Shelf, plan: Plan, room: int, config: PackConfig) -> None:
    """Entries that are not code, best first, each kind up to its share."""
    taken: dict[Kind, int] = {}
    missed: float | None = None
    for entry in entries:
        if _is_behind(entry, missed):
            entry.reason = Reason.OVER_BUDGET
            continue
        used = shelf.used
        left = int(room * _share(entry.kind, plan, config)) - taken.get(entry.kind, 0)
        shelf.put_best(entry, min(shelf.budget, used + max(0, left)))
        taken[entry.kind] = taken.get(entry.kind, 0) + shelf.used - used
        if entry.reason is Reason.OVER_BUDGET and used + left < shelf.budget:
            entry.reason = Reason.SHARE_CAP
        missed = _missed(entry, missed)


def _is_behind(entry: Entry, missed: float | None) -> bool:
    """Whether a nearer section of the document found no room: a reader who sees one takes all nearer ones for seen."""
    return missed is not None and entry.kind is Kind.SECTION_SUMMARY and entry.relevance < missed


def _missed(entry: Entry, missed: float | None) -> float | None:
    """The worth of the first section that found no room; those just as near may still be tried."""
    if missed is None and entry.kind is Kind.SECTION_SUMMARY and entry.chosen is None:
        return entry.relevance
    return missed


def _late_needs(shelf: Shelf, plan: Plan, room: int, config: PackConfig) -> int:
    """Tokens that code leaves to the tiers after it: no more than those can use within their shares."""
    code = max((entry.scored.tier for entry in shelf.open() if entry.kind in CODE_KINDS), default=None)
    limit = int(room * config.late_share)
    needs: dict[Kind, int] = {}
    for entry in shelf.open():
        if code is not None and entry.scored.tier > code and sum(needs.values()) < limit:
            need = needs.get(entry.kind, 0) + shelf.measure.alone(entry.choice(entry.forms[-1]))
            if need <= int(room * _share(entry.kind, plan, config)):
                needs[entry.kind] = need
    return min(limit, sum(needs.values()))


def _share(kind: Kind, plan: Plan, config: PackConfig) -> float:
    asked_for = (kind is Kind.DIFF and (plan.intent is Intent.REVIEW or plan.changes)) or (
        kind in (Kind.ARCHITECTURE, Kind.OVERVIEW) and (plan.broad or plan.practical)
    )
    return max(config.lead_share if asked_for else 0.0, config.shares[kind])


def _has_many_folders(scored: Sequence[Scored]) -> bool:
    files = (item.marked.candidate.file for item in scored)
    return len({file.folder for file in files if file is not None}) > 1
