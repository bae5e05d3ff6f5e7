"""A small client of the language server: one `haversack serve` process, spoken to over its standard streams.

It knows framing, request ids and what an editor answers, nothing of the server's code, so that the benchmarks measure
what an editor would see.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO, Self

import psutil

# An answer that takes longer is not coming: the longest request of the benchmarks ends in seconds.
ANSWER_SECONDS = 120.0
# Seconds between two looks at the index while it is built: short beside a build, rare enough not to slow it.
STATUS_INTERVAL = 0.02
# Seconds between two looks at the memory of the processes.
MEMORY_INTERVAL = 0.05
# What an editor offers that changes the server's ways: it watches files, so the server need not.
CAPABILITIES: Mapping[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "workspace": {
        "configuration": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
    },
}


class ServerError(Exception):
    """The server answered with an error, or not at all."""


class Server:
    """A running server on one folder. `with Server(...) as server:` shakes hands, and ends the process."""

    def __init__(self, folder: Path, cache_dir: Path, python: str = sys.executable, log: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.started = time.perf_counter()
        self._data = tempfile.TemporaryDirectory()  # memories of whoever runs the benchmark stay out of it
        self._log = (log or Path(os.devnull)).open("ab")
        self._process = subprocess.Popen(
            [python, "-m", "haversack", "serve", "--cache-dir", str(cache_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "XDG_DATA_HOME": self._data.name},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: BinaryIO = self._process.stdin
        self._stdout: BinaryIO = self._process.stdout
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        folders = [{"uri": self.folder.as_uri(), "name": self.folder.name}]
        params = {"processId": os.getpid(), "capabilities": CAPABILITIES, "workspaceFolders": folders}
        self.request("initialize", params)
        self.notify("initialized", {})
        self.greeted = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.request("shutdown", None, seconds=10)
            self.notify("exit", None)
            self._process.wait(10)
        except (ServerError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        self._log.close()
        self._data.cleanup()

    @property
    def pid(self) -> int:
        return self._process.pid

    def request(self, method: str, params: object, seconds: float = ANSWER_SECONDS) -> Any:
        """The result of one request. Raises `ServerError`."""
        number = next(self._ids)
        future: Future[Any] = Future()
        self._waiting[number] = future
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return future.result(seconds)
        except TimeoutError:
            raise ServerError(f"no answer to {method} within {seconds:.0f} s") from None

    def notify(self, method: str, params: object) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def timed(self, method: str, params: object) -> tuple[float, Any]:
        """Milliseconds from the first byte sent to the answer read and decoded, and the result."""
        before = time.perf_counter()
        result = self.request(method, params)
        return (time.perf_counter() - before) * 1000, result

    def context(self, text: str, budget: int, **more: Any) -> tuple[float, Any]:
        """Milliseconds and result of one `haversack/context`."""
        return self.timed("haversack/context", {"text": text, "budgetTokens": budget, **more})

    def status(self) -> Any:
        return self.request("haversack/index/status", {})

    def wait_ready(self, seconds: float = 1800.0) -> Any:
        """The status once the index is ready. Raises `ServerError` when it is degraded or takes too long."""
        limit = time.perf_counter() + seconds
        while time.perf_counter() < limit:
            status = self.status()
            if status["state"] == "ready":
                return status
            if status["state"] == "degraded":
                raise ServerError(f"the index is degraded: {[each['problems'] for each in status['folders']]}")
            time.sleep(STATUS_INTERVAL)
        raise ServerError(f"the index was not ready within {seconds:.0f} s")

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        with self._writing:
            self._stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            self._stdin.flush()

    def _read(self) -> None:
        while (body := _frame(self._stdout)) is not None:
            message = json.loads(body)
            if "method" in message:
                if "id" in message:
                    self._reply(message)
                continue
            future = self._waiting.pop(message.get("id"), None)
            if future is None:
                continue
            if "error" in message:
                future.set_exception(ServerError(str(message["error"])))
            else:
                future.set_result(message["result"])
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(ServerError("the server ended"))

    def _reply(self, message: Mapping[str, Any]) -> None:
        """Give the server what an editor without settings of ours gives: null for everything it asks."""
        params = message.get("params") or {}
        result = [None] * len(params["items"]) if message["method"] == "workspace/configuration" else None
        self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})


class Memory:
    """Peak resident sizes of a server and the processes below it, looked at from a thread while in the `with`.

    Bytes. `server`: the process that answers; `worker`: the one that writes the index; `parsers`: the others together
    (pages they share count once for each).
    """

    def __init__(self, pid: int) -> None:
        self.server = self.worker = self.parsers = self.total = 0
        self._process = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(MEMORY_INTERVAL):
            try:
                children = self._process.children()
                server = _resident(self._process)
                worker = sum(_resident(child) for child in children)
                parsers = sum(_resident(each) for child in children for each in child.children(recursive=True))
            except psutil.Error:
                continue  # one of them just ended
            self.server, self.worker = max(self.server, server), max(self.worker, worker)
            self.parsers, self.total = max(self.parsers, parsers), max(self.total, server + worker + parsers)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0..1) of `values` do not exceed, between neighbours in proportion."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def summary(values: Sequence[float]) -> dict[str, float]:
    return {name: percentile(values, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}


def megabytes(memory: Memory) -> dict[str, int]:
    sizes = {"server": memory.server, "worker": memory.worker, "parsers": memory.parsers, "total": memory.total}
    return {name: round(size / 1e6) for name, size in sizes.items()}


def _resident(process: psutil.Process) -> int:
    return int(process.memory_info().rss)


def _frame(stream: BinaryIO) -> bytes | None:
    """The body of the next message; None at the end."""
    length = 0
    while line := stream.readline():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
        elif not line.strip():
            return stream.read(length)
    return None
