"""Sources run side by side, each under its own deadline; a late or broken one costs only itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run

from haversack.gather import gather
from haversack.gatherers import TABLE
from haversack.types import Candidate, HaversackError, Kind, Plan, Problem, Source
from haversack.workspace import Workspace


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"ws": {"a.py": "def alpha():\n    return 1\n"}})


def candidate(name: str) -> Candidate:
    return Candidate(name, Source.HYBRID, Kind.CODE, name, 0.5, (), "", text=name)


def sleeping(name: str, seconds: float):
    async def gatherer(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
        await asyncio.sleep(seconds)
        return (candidate(name),), (Problem(name, "note", "seen"),)

    return gatherer


def failing(error: BaseException):
    async def gatherer(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
        raise error

    return gatherer


def planned(world: World, *sources: tuple[Source, float]) -> Plan:
    return world.plan("why is alpha slow", sources=sources)


def test_the_time_is_the_slowest_source_not_the_sum(world: World) -> None:
    """Five sources of 0.2 s take less than 0.35 s together."""
    sources = tuple(Source)[:5]
    table = {source: sleeping(source.value, 0.2) for source in sources}
    start = time.perf_counter()
    gathered = run(gather(planned(world, *((source, 2.0) for source in sources)), world.workspace(), table))
    assert time.perf_counter() - start < 0.35
    assert [each.id for each in gathered.candidates] == [source.value for source in sources]
    assert [timing.status for timing in gathered.timings] == ["ok"] * 5
    assert all(timing.milliseconds >= 190 and timing.n_candidates == 1 for timing in gathered.timings)


def test_a_late_source_costs_only_its_own_results(world: World) -> None:
    """The rest arrives, with a problem and a status for the late one, at the deadline and no later."""
    table = {Source.SYMBOLS: sleeping("slow", 5.0), Source.HYBRID: sleeping("quick", 0.01)}
    start = time.perf_counter()
    plan = planned(world, (Source.SYMBOLS, 0.1), (Source.HYBRID, 1.0))
    gathered = run(gather(plan, world.workspace(), table))
    assert time.perf_counter() - start < 0.5
    assert [each.id for each in gathered.candidates] == ["quick"]
    assert [(timing.name, timing.status) for timing in gathered.timings] == [("symbols", "late"), ("hybrid", "ok")]
    assert {timing.deadline for timing in gathered.timings} == {1_000 * deadline for _, deadline in plan.sources}
    assert "source_late" in {problem.code for problem in gathered.problems}


def test_a_source_that_blocks_a_thread_is_left_behind(world: World) -> None:
    """A stuck call on a reading thread does not hold the reply."""

    async def blocking(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
        await workspace.run(time.sleep, 0.6)
        return (), ()

    async def timed() -> tuple[float, str]:
        start = time.perf_counter()
        gathered = await gather(planned(world, (Source.SYMBOLS, 0.1)), world.workspace(), {Source.SYMBOLS: blocking})
        return time.perf_counter() - start, gathered.timings[0].status

    seconds, status = run(timed())
    assert (seconds < 0.3, status) == (True, "late")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("boom"), "source_failed"),
        (HaversackError("index_gone", "The index is gone."), "index_gone"),
        (TimeoutError(), "source_failed"),
        (asyncio.CancelledError(), "source_failed"),
    ],
)
def test_a_broken_source_leaves_the_others(world: World, error: BaseException, code: str) -> None:
    """Whatever a source raises becomes a problem; the others' results stay."""
    table = {Source.SYMBOLS: failing(error), Source.HYBRID: sleeping("ok", 0.01)}
    plan = planned(world, (Source.SYMBOLS, 1.0), (Source.HYBRID, 1.0))
    gathered = run(gather(plan, world.workspace(), table))
    assert [each.id for each in gathered.candidates] == ["ok"]
    assert [timing.status for timing in gathered.timings] == ["failed", "ok"]
    assert gathered.problems[0].code == code
    assert "boom" not in gathered.problems[0].message


def test_cancelling_ends_every_source(world: World) -> None:
    """When the user takes the question back, nothing goes on."""
    ended: list[str] = []

    async def watched(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
        try:
            await asyncio.sleep(5)
        finally:
            ended.append("ended")
        return (), ()

    async def cancelled() -> None:
        plan = planned(world, (Source.SYMBOLS, 9.0), (Source.HYBRID, 9.0))
        task = asyncio.create_task(gather(plan, world.workspace(), {Source.SYMBOLS: watched, Source.HYBRID: watched}))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert ended == ["ended", "ended"]  # before the loop's own end, which cancels whatever is left

    start = time.perf_counter()
    run(cancelled())
    assert time.perf_counter() - start < 1


def test_a_candidate_given_twice_stands_once(world: World) -> None:
    """Two sources that find the same thing make one row; the plan's first source keeps it."""
    table = {Source.SYMBOLS: sleeping("same", 0.05), Source.HYBRID: sleeping("same", 0.0)}
    plan = planned(world, (Source.SYMBOLS, 1.0), (Source.HYBRID, 1.0))
    assert len(run(gather(plan, world.workspace(), table)).candidates) == 1


def test_all_real_sources_answer_and_the_index_is_told(world: World) -> None:
    """Every source has its gatherer, and what was searched is named with generation and tier."""
    assert set(TABLE) == set(Source) - {Source.DOCUMENT}  # which `select` alone reads
    workspace = world.workspace()
    plan = planned(world, *((source, 5.0) for source in TABLE))
    gathered = run(gather(plan, workspace))
    assert {timing.status for timing in gathered.timings} == {"ok"}, gathered.problems
    assert gathered.index == {"ws": {"generation": 1, "tier": "keyword"}}
    assert len({each.id for each in gathered.candidates}) == len(gathered.candidates) > 0


def test_a_widened_plan_reaches_the_search_alone(world: World) -> None:
    """A secondary model's words are added to the user's, its problems are told, and other sources do not wait."""
    seen: list[tuple[str, ...]] = []

    async def widen(plan: Plan) -> tuple[Plan, tuple[Problem, ...]]:
        await asyncio.sleep(0.2)
        return replace(plan, terms=(*plan.terms, "beta")), (Problem("search terms", "late", "too late"),)

    async def edits(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
        seen.append(plan.terms)
        return (), ()

    plan = planned(world, (Source.HYBRID, 2.0), (Source.EDITS, 0.1))
    gathered = run(gather(plan, world.workspace(), {**TABLE, Source.EDITS: edits}, widen))
    assert world.indexes["ws"].queries[-1].terms == (*plan.terms, "beta")
    assert seen == [plan.terms]
    assert {problem.code for problem in gathered.problems} == {"late"}
