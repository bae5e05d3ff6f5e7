"""Candidates that another tool brings with the request."""

from __future__ import annotations

from haversack.types import Candidate, HaversackError, Kind, Plan, Problem, Reason, Source, Supplied
from haversack.workspace import Workspace


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    return await workspace.run(_candidates, plan, workspace), ()


def _candidates(plan: Plan, workspace: Workspace) -> tuple[Candidate, ...]:
    return tuple(
        _unreadable(place, each) if each.fault else _candidate(each, plan, workspace)
        for place, each in enumerate(plan.request.supplied)
    )


def _unreadable(place: int, supplied: Supplied) -> Candidate:
    """An item of which no more is known than its place; an id of its own could be that of another."""
    return Candidate(
        id=f"supplied[{place}]",
        source=Source.SUPPLIED,
        kind=Kind.SUPPLIED,
        title=f"supplied[{place}]",
        relevance=0.0,
        parts=(),
        why="brought by another tool",
        refused=(Reason.MALFORMED,),
        verdict=supplied.verdict,
    )


def _candidate(supplied: Supplied, plan: Plan, workspace: Workspace) -> Candidate:
    """The tool's text as it came; a path only says where the text is from, nothing is read."""
    score = min(1.0, max(0.0, supplied.score))
    title = supplied.title or supplied.path or supplied.id
    if supplied.path and supplied.lines is not None:
        title = f"{title} ({supplied.path}:{supplied.lines[0] + 1}-{supplied.lines[1]})"
    return Candidate(
        id=f"supplied:{supplied.id}",
        source=Source.SUPPLIED,
        kind=Kind.SUPPLIED,
        title=title,
        relevance=score,
        parts=(("supplied", score),),
        why="brought by another tool",
        required=supplied.required,
        text=supplied.text,
        origins=_origins(supplied, plan, workspace),
        refused=supplied.verdict.reasons if supplied.verdict else (),
        verdict=supplied.verdict,
    )


def _origins(supplied: Supplied, plan: Plan, workspace: Workspace) -> tuple[str, ...]:
    """Where the text says it is from: every folder that has such a file, else the path as written."""
    if not supplied.path:
        return ()
    try:
        places = workspace.resolve(supplied.path, plan.request.folder)
    except HaversackError:
        places = ()
    return tuple(f"{place.folder}/{place.path}" for place in places) or (supplied.path,)
