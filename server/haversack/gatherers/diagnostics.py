"""Errors and warnings that the editor reports, file by file, each with the line it is about."""

from __future__ import annotations

from collections.abc import Sequence

from haversack.places import Place
from haversack.types import Candidate, Diagnostic, HaversackError, Kind, MentionKind, Plan, Problem, Source
from haversack.workspace import Workspace

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
# A broken import makes hundreds of follow-up errors; the first ones tell the cause.
MOST_PER_FILE = 20
MOST_FILES = 20
# A generated line may be a megabyte long.
LONGEST_LINE = 300
# Relevance by why it is taken: asked for, in the document in front of the user, a question about errors.
ASKED, ACTIVE, ABOUT_ERRORS = 1.0, 0.8, 0.6


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    asked = any(mention.kind is MentionKind.PROBLEMS for mention in plan.mentions)
    candidates = await workspace.run(_by_file, asked, plan, workspace)
    n_left = len(candidates) - MOST_FILES
    if n_left > 0:
        message = f"{n_left} more files have problems; the first {MOST_FILES} were taken."
        problem = Problem(Source.DIAGNOSTICS.value, "diagnostics_capped", message, "Fix these first, or name the file.")
        return candidates[:MOST_FILES], (problem,)
    if asked and not candidates:
        return (), (Problem(Source.DIAGNOSTICS.value, "no_problems", "The editor reports no errors or warnings."),)
    return candidates, ()


def _by_file(asked: bool, plan: Plan, workspace: Workspace) -> tuple[Candidate, ...]:
    active = _place(plan.request.active.uri, workspace) if plan.request.active is not None else None
    by_place: dict[Place, list[Diagnostic]] = {}
    for diagnostic in workspace.snapshot.diagnostics:
        place = _place(diagnostic.uri, workspace)
        if place is not None:
            by_place.setdefault(place, []).append(diagnostic)
    found: list[Candidate] = []
    for place, diagnostics in by_place.items():
        if asked:
            relevance, why = ASKED, "you asked for the problems"
        elif place == active:
            relevance, why = ACTIVE, "reported in the document in front of you"
        elif "errors" in plan.categories and any(each.severity == 1 for each in diagnostics):
            relevance, why = ABOUT_ERRORS, "an error is reported and you ask about errors"
        else:
            continue
        found.append(_candidate(place, diagnostics, relevance, why, workspace))
    return tuple(sorted(found, key=lambda candidate: (-candidate.relevance, candidate.id)))


def _place(uri: str, workspace: Workspace) -> Place | None:
    try:
        return next(iter(workspace.resolve(uri)), None)
    except HaversackError:
        return None


def _candidate(
    place: Place, diagnostics: Sequence[Diagnostic], relevance: float, why: str, workspace: Workspace
) -> Candidate:
    ordered = sorted(diagnostics, key=lambda each: (each.severity, each.start.line, each.start.character, each.message))
    file = workspace.read(place.folder, place.path)
    parts: list[str] = []
    for each in ordered[:MOST_PER_FILE]:
        source = f" [{' '.join(filter(None, (each.source, each.code)))}]" if each.source or each.code else ""
        message = " ".join(each.message.split())
        parts.append(
            f"{place.path}:{each.start.line + 1}: {_SEVERITIES.get(each.severity, 'error')}: {message}{source}"
        )
        if file is not None and each.start.line < len(file.lines):
            parts.append("    " + file.lines[each.start.line].strip()[:LONGEST_LINE])
    left = len(ordered) - MOST_PER_FILE
    if left > 0:
        parts.append(f"(and {left} more)")
    origin = f"{place.folder}/{place.path}"
    return Candidate(
        id=f"diagnostics:{origin}",
        source=Source.DIAGNOSTICS,
        kind=Kind.DIAGNOSTIC,
        title=f"Problems in {place.path}",
        relevance=relevance,
        parts=(("diagnostics", relevance),),
        why=why,
        required=relevance == ASKED,
        text="\n".join(parts) + "\n",
        origins=(origin,),
    )
