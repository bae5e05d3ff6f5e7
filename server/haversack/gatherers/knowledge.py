"""What is known beyond the text at hand: the project's architecture, the user's memories, the people behind files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from haversack.gatherers.architecture import architecture
from haversack.gatherers.team import is_about_people, team
from haversack.memory import Category, Memory, rank
from haversack.policy.injection import neutral
from haversack.policy.privacy import UNNAMED_ORIGIN
from haversack.types import Candidate, Kind, Plan, Problem, Source
from haversack.workspace import Workspace

# Rules are kept whatever the question; this many characters of them (some 1,000 tokens) are a must, more only a wish.
REQUIRED_RULES = 4_000
MOST_MEMORIES = 12
# A memory this far below the best one shares only common words with the question.
WEAKEST_MEMORY = 0.25


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    parts: list[Awaitable[tuple[Candidate, ...]]] = []
    if plan.codebase and (plan.broad or "architecture" in plan.categories):
        parts.append(workspace.run(architecture, plan, workspace))
    if plan.codebase and workspace.snapshot.settings.team_context and is_about_people(plan.request.text):
        parts.append(team(plan, workspace))
    (memories, problems), results = await asyncio.gather(
        workspace.run(_memories, plan, workspace), asyncio.gather(*parts)
    )
    return (*memories, *(candidate for result in results for candidate in result)), problems


def _memories(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    if workspace.memory is None:
        return (), ()
    roots = [folder.root for folder in workspace.folders_in_play(plan.request.folder)]
    memories = workspace.memory.list(roots)
    # All rules come; those that speak of the question are a must before the others are. Ties go by id, never by age.
    rules = sorted((memory for memory in memories if memory.category is Category.RULE), key=lambda rule: rule.id)
    speaking = [rule for rule, _ in rank(plan.request.text, rules)]
    rules = [*speaking, *(rule for rule in rules if rule not in speaking)]
    notes = [memory for memory in memories if memory.category is not Category.RULE]
    others = rank(plan.request.text, notes) if plan.codebase else ()
    found: list[Candidate] = []
    room = REQUIRED_RULES
    for memory in rules:
        fits = len(memory.content) <= room
        room -= len(memory.content) if fits else 0
        found.append(_candidate(memory, 1.0, "a rule you keep", fits))
    telling = [(memory, score) for memory, score in others if score >= WEAKEST_MEMORY]
    for memory, score in telling[:MOST_MEMORIES]:
        found.append(_candidate(memory, score, "a memory that speaks of the question", False))
    n_left = len(telling) - MOST_MEMORIES
    if n_left <= 0:
        return tuple(found), ()
    message = f"{n_left} more memories speak of the question; the best {MOST_MEMORIES} were taken."
    return tuple(found), (Problem(Source.KNOWLEDGE.value, "memories_capped", message, "Ask more narrowly."),)


def _candidate(memory: Memory, relevance: float, why: str, required: bool) -> Candidate:
    text, was_changed = neutral(memory.content)
    heading, heading_changed = neutral(memory.title)
    return Candidate(
        id=f"memory:{memory.id}",
        source=Source.KNOWLEDGE,
        kind=Kind.MEMORY,
        title=heading,
        relevance=relevance,
        parts=((memory.category.value, relevance),),
        why=why,
        required=required,
        text=text if text.endswith("\n") else text + "\n",
        origins=(*memory.origins, *((UNNAMED_ORIGIN,) if memory.private else ())),
        flags=("instruction-like",) if was_changed or heading_changed else (),
    )
