"""A line and an index that do what a test asks of them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from haversack.indexing import OnChange, OnProblem, Reader
from haversack.pipeline import Paused
from haversack.types import (
    Block,
    Bundle,
    CompactTier,
    Detail,
    Folder,
    HaversackError,
    History,
    Kind,
    Manifest,
    ManifestItem,
    Message,
    Model,
    Outcome,
    Prompt,
    Request,
    Role,
    Route,
    Settings,
    Source,
    Timing,
    TokenUse,
)
from haversack.workspace import Workspace
from haversack_index.client import WorkerEvent
from haversack_index.types import IndexState, IndexStatus

CANARY = "sk-canary-3141592653"


class FakeLine:
    """Acts on the first word of the question; any other question is answered with all open text."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.workspaces: list[Workspace] = []

    async def run(self, request: Request, workspace: Workspace, services: object = None) -> Bundle:
        self.requests.append(request)
        self.workspaces.append(workspace)
        word, _, rest = request.text.partition(" ")
        match word:
            case "sleep":
                await asyncio.sleep(float(rest))
            case "block":
                await workspace.run(time.sleep, float(rest))
            case "crash":
                raise RuntimeError(f"a secret: {CANARY}")
            case "refuse":
                raise HaversackError("path_outside_workspace", "That is outside.", "Name another file.", path=rest)
            case "print":
                print("stray output")
                os.write(1, b"Content-Length: 3\r\n\r\nabc\n")
        score = {"nan": float("nan"), "infinite": float("inf")}.get(word, 0.5)
        texts = [
            document.text
            for document in workspace.snapshot.documents.values()
            if request.active is None or document.uri == request.active.uri
        ]
        text = {"surrogate": "\ud800", "long": "x" * int(rest or 0) if word == "long" else ""}.get(word, "".join(texts))
        return bundle(request, text, score)

    async def resume(self, paused: Paused, opened: Mapping[str, Message]) -> Bundle:
        del opened
        return paused

    async def preview(self, request: Request, workspace: Workspace) -> Bundle:
        full = await self.run(request, workspace)
        messages = tuple(replace(message, content="") for message in full.prompt.messages)
        blocks = tuple(replace(block, text="") for block in full.blocks)
        return replace(full, prompt=replace(full.prompt, messages=messages), blocks=blocks)


def bundle(request: Request, text: str = "text", score: float = 0.5) -> Bundle:
    """A complete bundle; one message and one block hold `text`, `why` of the only row what was asked."""
    item = ManifestItem(
        id="i1",
        source=Source.MENTIONS,
        kind=Kind.FILE,
        title="a.py",
        folder="ws",
        path="a.py",
        lines=(2, 5),
        required=True,
        restricted=False,
        outcome=Outcome.INCLUDED,
        detail=Detail.FULL,
        reasons=(),
        tokens_before=7,
        tokens_after=7,
        score=score,
        parts=(("kind", 1.0),),
        why=repr((request.active, request.mentions)),
        content_hash="00",
        flags=(),
    )
    block = Block("a.py", "ws", "a.py", ((2, 5), (8, 9)), Kind.FILE, Detail.FULL, text, 7, score, ("i1",), "python")
    use = TokenUse(16_000, "assumed", 1_000, 10, 0, 0, 5, 7, 4_000, 22, "estimated", "fake")
    manifest = Manifest((item,), (Timing("mentions", "ok", 1.5, 1),), use, request.problems, {}, {}, "manifest-hash")
    model = Model("fake", "fake", "fake", 16_000, 1_000, "fake", 4_000, True)
    return Bundle(
        status="completed",
        prompt=Prompt((Message(Role.USER, text),), 22, 3),
        blocks=(block,),
        route=Route(model, 16_000, "assumed", 1_000),
        manifest=manifest,
        history=History((), CompactTier.NONE, 0, 0),
        version_hash="version-hash",
        problems=request.problems,
    )


class FakeReader:
    """Counts of an index and nothing else."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.generation = 1
        self.closed = False

    def status(self) -> IndexStatus:
        return IndexStatus(self.folder.root, IndexState.READY, 1, 10, 20, 30, 20, 10, 10, {"binary": 2}, "fake")

    def close(self) -> None:
        self.closed = True


class FakeWorker:
    """Tells a whole pass for every update: one step every `step` seconds."""

    def __init__(self, on_event: Callable[[WorkerEvent], None], step: float) -> None:
        self.updates: list[Sequence[str] | None] = []
        self.configured: list[Settings] = []
        self.stopped = False
        self._on_event = on_event
        self._step = step
        self._passes: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await self.update(None)

    async def update(self, paths: Sequence[str] | None) -> None:
        self.updates.append(paths)
        self._passes.add(asyncio.create_task(self._pass()))

    async def rebuild(self) -> None:
        await self.update(None)

    async def configure(self, settings: Settings) -> None:
        self.configured.append(settings)

    async def stop(self) -> None:
        self.stopped = True
        for each in self._passes:
            each.cancel()

    async def _pass(self) -> None:
        self._on_event(WorkerEvent("scanning"))
        for done in range(5):
            await asyncio.sleep(self._step)
            self._on_event(WorkerEvent("progress", done=done, total=4))
        self._on_event(WorkerEvent("skipped", counts={"binary": 2}))
        self._on_event(WorkerEvent("ready", generation=1))


class FakeIndexing:
    """Indexes that are ready after a moment. `fails` names what raises: "reader" or "watch"."""

    def __init__(self, step: float = 0.0, fails: str = "") -> None:
        self.workers: list[FakeWorker] = []
        self.readers: list[FakeReader] = []
        self.watched: list[str] = []
        self.report: OnChange | None = None
        self._step = step
        self._fails = fails

    def open_reader(self, folder: Folder, settings: Settings) -> Reader:
        del settings
        if self._fails == "reader":
            raise OSError(CANARY)
        self.readers.append(FakeReader(folder))
        return cast("Reader", cast("Any", self.readers[-1]))

    def make_worker(self, folder: Folder, settings: Settings, on_event: Callable[[WorkerEvent], None]) -> FakeWorker:
        del folder, settings
        self.workers.append(FakeWorker(on_event, self._step))
        return self.workers[-1]

    async def watch(self, folder: Folder, settings: Settings, on_change: OnChange, on_problem: OnProblem) -> None:
        del settings, on_problem
        if self._fails == "watch":
            raise OSError(CANARY)
        self.watched.append(folder.key)
        self.report = on_change
        await asyncio.Event().wait()
