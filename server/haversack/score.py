"""Scores marked candidates: a sum of named parts, in which the tier of the kind outweighs everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haversack.types import TRACE_PART, Candidate, Intent, Kind, Marked, Plan, Scored
from haversack_index.types import Parts


@dataclass(frozen=True, slots=True)
class Near:
    """Files near the user, as `folder/path` names: the one being edited, and those lately touched, newest first."""

    active: str = ""
    recent: tuple[str, ...] = ()


# Distance of two tiers. The parts inside a tier add up to less (see `_LIMIT`), so kinds never cross.
TIER_GAP = 10.0
_LIMIT = 9.0

# A candidate that defines a name the question spells out goes before equals; more, and a common name in a message
# puts the wrong file first.
EXACT_DEFINITION = 0.2

# Where a trace happened comes before the names that it holds as well, which its outer frames define.
TRACED = 0.4

# The file in front of the user breaks ties and near-ties, but does not outweigh a clearly better match.
ACTIVE_FILE = 0.15
ACTIVE_FOLDER = 0.05

# Lately touched files, falling linearly with age in the list; under `ACTIVE_FILE` for the same reason.
RECENT_FILE = 0.1


def score(marked: Sequence[Marked], plan: Plan, near: Near = Near()) -> tuple[Scored, ...]:
    """One Scored for each candidate, best first; ties by id, so the order of arrival does not matter."""
    tiers = _tiers(plan)
    scored = [_score_one(item, plan, near, tiers) for item in marked]
    return tuple(sorted(scored, key=lambda s: (s.tier, -s.score, s.marked.candidate.id, s.marked.candidate.title)))


def _tiers(plan: Plan) -> tuple[frozenset[str], ...]:
    """Groups of kinds, best first. "required" and "rule" stand for candidates of any kind that carry that mark."""
    code = frozenset({Kind.SYMBOL, Kind.CODE, Kind.OUTLINE, Kind.SUPPLIED})
    diff, about = frozenset({Kind.DIFF}), frozenset({Kind.ARCHITECTURE, Kind.OVERVIEW})
    middle = [code, diff, about]
    if plan.intent is Intent.REVIEW or plan.changes:
        middle = [diff, code, about]
    if plan.broad or plan.practical:
        middle = [about, *(group for group in middle if group is not about)]
    head = [frozenset({"required", Kind.SELECTION, Kind.FILE, Kind.DOCUMENT_IDENTITY}), frozenset({"rule"})]
    beside = frozenset({Kind.DIAGNOSTIC, Kind.EDIT, Kind.SECTION_SUMMARY})
    return (*head, beside, *middle, frozenset({Kind.MEMORY}), frozenset({Kind.TEAM}))


def _score_one(item: Marked, plan: Plan, near: Near, tiers: tuple[frozenset[str], ...]) -> Scored:
    candidate = item.candidate
    name = "required" if item.required else "rule" if _is_rule(candidate) else candidate.kind
    tier = next(place for place, names in enumerate(tiers) if name in names)
    inside = (*_source_parts(candidate), *_own_parts(candidate, plan, near))
    total = sum(value for _, value in inside)
    if abs(total) > _LIMIT:
        inside = (*inside, ("limit", max(-_LIMIT, min(_LIMIT, total)) - total))
    parts: Parts = (("tier", TIER_GAP * (len(tiers) - tier)), *inside)
    return Scored(item, sum(value for _, value in parts), parts, tier)


def _is_rule(candidate: Candidate) -> bool:
    """A memory that its user keeps as a rule; the store's category is the name of its score part."""
    return candidate.kind is Kind.MEMORY and any(name == "rule" for name, _ in candidate.parts)


def _source_parts(candidate: Candidate) -> Parts:
    """The source's own parts under its name. They need not add up to its relevance, so the rest is a part as well."""
    prefix = candidate.source.value
    parts = tuple((f"{prefix}.{name}", round(value, 6)) for name, value in candidate.parts)
    rest = round(candidate.relevance - sum(value for _, value in parts), 6)
    return parts if not rest else (*parts, (f"{prefix}.relevance" if not parts else f"{prefix}.scale", rest))


def _own_parts(candidate: Candidate, plan: Plan, near: Near) -> Parts:
    parts: list[tuple[str, float]] = []
    if any(name == TRACE_PART for name, _ in candidate.parts):
        parts.append(("traced", TRACED))
    elif candidate.kind in (Kind.SYMBOL, Kind.CODE) and candidate.heading and candidate.heading[-1] in plan.identifiers:
        parts.append(("exact-definition", EXACT_DEFINITION))
    if candidate.file is not None:
        name = f"{candidate.file.folder}/{candidate.file.path}"
        if name == near.active:
            parts.append(("active-file", ACTIVE_FILE))
        elif near.active and name.rpartition("/")[0] == near.active.rpartition("/")[0]:
            parts.append(("active-folder", ACTIVE_FOLDER))
        if name in near.recent:
            age = near.recent.index(name) / len(near.recent)
            parts.append(("recent-file", round(RECENT_FILE * (1 - age), 6)))
    return tuple(parts)
