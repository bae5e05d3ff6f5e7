"""A sealed conversation, a session that takes it, and a client that has its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from e2e.fakes import FakeIndexing
from gathering import World, run

from haversack import pipeline, sealing
from haversack.pipeline import Paused, Services
from haversack.session import Session
from haversack.tokens import counter
from haversack.turns import Turns
from haversack.types import Bundle, HaversackError, Message, OpenedRecord, Request, Role, Settings, ToolCall
from haversack.workspace import Workspace

FILES = {"src/budget.py": "def split_budget(total, parts):\n    return [total // parts] * parts\n"}
REMOTE, LOCAL = "openai/gpt-4o", "ollama/qwen2.5-coder:7b"
KEY = b"k" * 32
COUNT = counter("o200k").count
TALK = (
    Message(Role.USER, "canary one: where is the budget?"),
    Message(Role.ASSISTANT, "canary two", (ToolCall("t1", "read_file", '{"path": "canary"}'),)),
    Message(Role.TOOL, "canary three", tool_call_id="t1", name="read_file"),
    Message(Role.ASSISTANT, "canary four"),
)


class OnWorld:
    """The real line, on the small workspace instead of the session's own."""

    def __init__(self, world: World) -> None:
        self.workspace = world.workspace()
        self.resumed = 0

    async def run(self, request: Request, workspace: Workspace, services: Services) -> Bundle:
        return await pipeline.run(request, self.workspace, services)

    async def resume(self, paused: Paused, opened: Mapping[str, Message]) -> Bundle:
        self.resumed += 1
        return await pipeline.resume(paused, opened)

    async def preview(self, request: Request, workspace: Workspace) -> Bundle:
        return await pipeline.preview(request, self.workspace)


def session_on(world: World, clock: Callable[[], float] = lambda: 0.0) -> Session:
    session = Session(line=OnWorld(world), indexing=FakeIndexing())
    session.paused.turns = Turns(clock)
    return session


def seal(message: Message, at: int, count: Callable[[str], int] = COUNT) -> Message:
    return sealing.seal(message, KEY, ref=f"message:{at}", session="s", sequence=at, count=count)


def seal_all(messages: Sequence[Message], count: Callable[[str], int] = COUNT) -> tuple[Message, ...]:
    return tuple(seal(message, at, count) for at, message in enumerate(messages))


def request(history: Sequence[Message], model: str = REMOTE, **changes: Any) -> Request:
    return Request("how does split_budget work?", model=model, history=tuple(history), **changes)


def refs(bundle: Bundle) -> list[str]:
    return [message.sealed.ref for message in bundle.to_decrypt if message.sealed]


def open_all(bundle: Bundle) -> list[OpenedRecord]:
    return [sealing.open_record(message, KEY) for message in bundle.to_decrypt]


def answer(world: World, asked: Request) -> tuple[Bundle, Bundle]:
    """What the client hears first, and in the end."""

    async def talk() -> tuple[Bundle, Bundle]:
        async with session_on(world) as session:
            first = await session.context(asked)
            return first, await session.resume(first.turn, open_all(first))

    return run(talk())


def same(one: Bundle, other: Bundle) -> bool:
    return (one.prompt, one.blocks, one.route, one.version_hash, one.manifest.hash, one.problems) == (
        other.prompt,
        other.blocks,
        other.route,
        other.version_hash,
        other.manifest.hash,
        other.problems,
    )


def long_talk(n: int = 16) -> list[Message]:
    return [Message(Role.USER if at % 2 == 0 else Role.ASSISTANT, f"canary {at} " + "word " * 500) for at in range(n)]


def small(world: World, **changes: Any) -> World:
    return replace(world, settings=Settings(context_window=8_000, **changes))


async def code_of(work: Any) -> str:
    with pytest.raises(HaversackError) as refused:
        await work
    return refused.value.code
