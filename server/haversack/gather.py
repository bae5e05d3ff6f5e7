"""Runs the plan's sources side by side, each under its own deadline."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from haversack.gatherers import TABLE, Gatherer
from haversack.types import (
    Candidate,
    Detail,
    FileText,
    Form,
    HaversackError,
    Kind,
    Plan,
    Problem,
    Reason,
    Source,
    Timing,
)
from haversack.workspace import Workspace

logger = logging.getLogger(__name__)

Widen = Callable[[Plan], Awaitable[tuple[Plan, tuple[Problem, ...]]]]
"""Adds search words to a plan, within its own short deadline. The search alone waits for it, no other source."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the sources gave, in the plan's order. `index` tells generation and tier per folder that was searched."""

    candidates: tuple[Candidate, ...]
    problems: tuple[Problem, ...]
    timings: tuple[Timing, ...]
    index: Mapping[str, object] = field(default_factory=dict[str, object])
    otherwise: frozenset[str] = frozenset()  # origins that are restricted under another name
    kept: Mapping[str, Reason] = field(default_factory=dict[str, Reason])  # origins that are links to kept documents


async def gather(
    plan: Plan,
    workspace: Workspace,
    table: Mapping[Source, Gatherer] = TABLE,
    widen: Widen | None = None,
) -> Gathered:
    """Results of all sources. A late or broken source costs its results and adds a Problem, never the reply.

    Takes as long as the slowest source. Cancelling it cancels every source.
    """
    start = time.perf_counter()
    tasks = [
        asyncio.create_task(_timed(source, table[source], plan, workspace, widen), name=source.value)
        for source, _ in plan.sources
    ]
    try:
        pairs = zip(tasks, plan.sources, strict=True)
        results = await asyncio.gather(*(_kept(task, source, deadline, start) for task, (source, deadline) in pairs))
    finally:
        for task in tasks:
            task.cancel()
    # Sources must not overwrite each other in the manifest: the first candidate of an id stands.
    first = {each.id: each for result in reversed(results) for each in reversed(result[0])}
    found = _said_once([each for result in results for each in result[0] if first[each.id] is each])
    return Gathered(
        candidates=(*found, *_withheld(workspace, found)),
        problems=tuple(problem for result in results for problem in result[1]),
        timings=tuple(result[2] for result in results),
        index={
            folder: {"generation": generation, "tier": tier.value}
            for folder, (generation, tier) in sorted(workspace.searched.items())
        },
    )


def _said_once(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Rules files are in the system message whole, so what search found in them says nothing new."""
    rules = {each.origins[0] for each in found if each.kind is Kind.RULE and each.required and "cut" not in each.flags}
    return tuple(
        replace(each, refused=(Reason.COVERED,))
        if each.file is not None
        and f"{each.file.folder}/{each.file.path}" in rules
        and each.source in (Source.HYBRID, Source.SYMBOLS)
        and not each.refused
        else each
        for each in found
    )


def _withheld(workspace: Workspace, found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """A row for each document that some source asked for and the reader may not have."""
    told = {origin for each in found for origin in each.origins}
    places = [f"{folder}/{path}" for folder, path in workspace.withheld]
    return tuple(
        Candidate(
            id=f"withheld:{name}",
            source=Source.DOCUMENT,
            kind=Kind.FILE,
            title=name.removeprefix("/"),
            relevance=0.0,
            parts=(),
            why="a source asked for it",
            file=FileText(folder, path, (), "", ""),
            forms=(Form(Detail.FULL, ()),),
            origins=(name,),
            refused=(reason,),
        )
        for name, ((folder, path), reason) in sorted(zip(places, workspace.withheld.items(), strict=True))
        if name not in told
    )


_Result = tuple[tuple[Candidate, ...], tuple[Problem, ...], Timing]


async def _kept(
    task: asyncio.Task[tuple[tuple[Candidate, ...], tuple[Problem, ...], float]],
    source: Source,
    deadline: float,
    start: float,
) -> _Result:
    """The task's result, or the Problem that stands for it. Does not wait for a source that ignores its deadline."""
    done, _ = await asyncio.wait({task}, timeout=max(0.0, deadline - (time.perf_counter() - start)))
    spent = 1_000 * (time.perf_counter() - start)
    if not done:
        task.cancel()
        message = f"{source.value} took longer than {1_000 * deadline:,.0f} ms and was left out."
        problem = Problem(source.value, "source_late", message, "Raise the source deadline, or ask again.")
        return (), (problem,), Timing(source.value, "late", spent, deadline=1_000 * deadline)
    error = task.exception() if not task.cancelled() else asyncio.CancelledError()
    if error is None:
        candidates, problems, spent = task.result()
        return candidates, problems, Timing(source.value, "ok", spent, len(candidates), 1_000 * deadline)
    if isinstance(error, HaversackError):
        problem = Problem(source.value, error.code, error.message, error.remedy)
    else:
        # Where it failed, not with what words: an error's message may quote the file that it stumbled over.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("source %s failed with %s\n%s", source.value, type(error).__name__, frames)
        message = f"{source.value} failed ({type(error).__name__}) and was left out."
        problem = Problem(source.value, "source_failed", message, "The log has the details.")
    return (), (problem,), Timing(source.value, "failed", spent, deadline=1_000 * deadline)


async def _timed(
    source: Source, gatherer: Gatherer, plan: Plan, workspace: Workspace, widen: Widen | None
) -> tuple[tuple[Candidate, ...], tuple[Problem, ...], float]:
    start = time.perf_counter()
    problems: tuple[Problem, ...] = ()
    if source is Source.HYBRID and widen is not None:
        plan, problems = await widen(plan)
    candidates, found = await gatherer(plan, workspace)
    return candidates, problems + found, 1_000 * (time.perf_counter() - start)
