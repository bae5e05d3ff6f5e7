"""The server's end of the indexing process: starts it, feeds it, hears it, and starts it again when it crashes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from haversack_index.pool import EmbedderSpec
from haversack_index.walk import WalkRules

# An editor gives up on a server after five crashes in three minutes; a worker gets as many starts.
MAX_RESTARTS = 4
# Waits before each of them, in seconds.
RESTART_WAITS = (0.5, 2.0, 8.0, 30.0)
# A worker that ran this long was well: its earlier crashes are forgotten.
HEALTHY_SECONDS = 300.0
# Longest line taken from a worker; the longest it sends is a table of skip reasons.
MAX_LINE = 1_000_000
# From asking a worker to stop until it is killed; a batch takes half a second.
STOP_SECONDS = 3.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """What a worker tells. `kind`: scanning, progress, generation, skipped, problem, ready, or stopped (for good).

    `behind`, of a "ready": a command was sent that its pass did not take in, so another one follows.
    """

    kind: str
    done: int = 0
    total: int = 0
    generation: int = 0
    message: str = ""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    ticket: int = 0
    behind: bool = False


class WorkerClient:
    """One indexing process of one folder. All methods belong to the event loop's thread and do not block it.

    `on_event` is called in that thread; what it raises is logged and goes no further.
    """

    def __init__(
        self,
        folder: Path,
        cache_dir: Path,
        on_event: Callable[[WorkerEvent], None],
        *,
        rules: WalkRules | None = None,
        embedder: EmbedderSpec | None = None,
        command: Sequence[str] | None = None,
        restart_waits: Sequence[float] = RESTART_WAITS,
        processes: int = 0,
    ) -> None:
        self._folder, self._cache_dir = folder, cache_dir
        self._on_event = on_event
        self._rules = rules or WalkRules()
        self._embedder = embedder
        self._command = tuple(command) if command else (sys.executable, "-m", "haversack_index.worker")
        self._restart_waits = restart_waits
        self._processes = processes
        self._process: asyncio.subprocess.Process | None = None
        self._runner: asyncio.Task[None] | None = None
        self._stopping = False
        self._sent = 0  # the ticket of the last command

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process and a first pass over the folder. OSError when it cannot be started at all."""
        self._stopping = False
        await self._spawn()
        self._runner = asyncio.create_task(self._keep_running())

    async def update(self, paths: Sequence[str] | None = None) -> None:
        """Look at these paths (relative to the folder), or at the whole folder."""
        await self._send({"command": "update", "paths": None if paths is None else list(paths)})

    async def rebuild(self) -> None:
        await self._send({"command": "rebuild"})

    async def configure(self, rules: WalkRules, embedder: EmbedderSpec | None) -> None:
        """Other rules or another embedder: takes effect by a pass over the folder."""
        self._rules, self._embedder = rules, embedder
        value = None if embedder is None else asdict(embedder)
        await self._send({"command": "configure", "rules": asdict(rules), "embedder": value})

    async def stop(self) -> None:
        """Ask the process to end and wait for it, three seconds at most."""
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            await self._send({"command": "stop"})
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if self._runner is not None:
            self._runner.cancel()
            with suppress(asyncio.CancelledError):
                await self._runner
            self._runner = None

    async def _spawn(self) -> None:
        arguments = ["--folder", str(self._folder), "--cache-dir", str(self._cache_dir)]
        arguments += ["--rules", json.dumps(asdict(self._rules)), "--processes", str(self._processes)]
        if self._embedder is not None:
            arguments += ["--embedder", json.dumps(asdict(self._embedder))]
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,
            limit=MAX_LINE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            process_group=0,  # Ctrl-C in a terminal is for the server alone, which then ends its worker
        )
        await self._send({"command": "update", "paths": None})

    async def _keep_running(self) -> None:
        """Hear the process until it is told to stop; start it again when it ends by itself."""
        crashes = 0
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            await self._listen()
            if self._stopping:
                return
            crashes = 1 if loop.time() - started > HEALTHY_SECONDS else crashes + 1
            code = self._process.returncode if self._process is not None else None
            if crashes > MAX_RESTARTS:
                message = (
                    f"The indexer ended {crashes} times (last status {code}) and stays off; what is indexed is used."
                )
                self._tell(WorkerEvent("problem", message=message))
                self._tell(WorkerEvent("stopped", message=message))
                return
            self._tell(WorkerEvent("problem", message=f"The indexer ended (status {code}) and is started again."))
            await asyncio.sleep(self._restart_waits[min(crashes, len(self._restart_waits)) - 1])
            try:
                await self._spawn()
            except OSError as error:
                self._tell(WorkerEvent("problem", message=f"The indexer could not be started: {error}"))

    async def _listen(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                continue  # longer than any message; the rest of it is not one either
            if not line:
                break
            event = _event(line)
            if event is not None:
                self._tell(replace(event, behind=event.kind == "ready" and event.ticket < self._sent))
        await process.wait()

    async def _send(self, command: Mapping[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            return  # a worker that is started again begins with a pass over everything, so nothing is lost
        self._sent += 1
        try:
            process.stdin.write(json.dumps({**command, "ticket": self._sent}).encode() + b"\n")
            await process.stdin.drain()
        except (ConnectionError, RuntimeError):
            return

    def _tell(self, event: WorkerEvent) -> None:
        try:
            self._on_event(event)
        except Exception:  # noqa: BLE001 - a listener is any code, and must not stop the listening
            _log.exception("a listener of the indexer failed on %s", event.kind)


def _event(line: bytes) -> WorkerEvent | None:
    try:
        values: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    known = cast("dict[str, Any]", values)
    fields = {
        name: known[name] for name in ("done", "total", "generation", "message", "counts", "ticket") if name in known
    }
    return WorkerEvent(str(known.get("event", "")), **fields)
