"""A client that speaks JSON-RPC to a real server process and can also speak it badly."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

Message = dict[str, Any]
SERVER = (sys.executable, "-m", "haversack", "serve")
FAKE_SERVER = (sys.executable, str(Path(__file__).with_name("fake_server.py")))
# Seconds to wait for one message on a loaded machine before the test fails.
PATIENCE = 20.0


class RawClient:
    """One server process. Messages from it are read on a thread; `expect` waits for the answer to one id."""

    def __init__(self, home: Path, command: Sequence[str] = SERVER) -> None:
        places = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("cache", "data", "config")}
        environment = {**os.environ, **places}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self.answers: list[Message] = []
        self.sent: list[Message] = []  # notifications and requests from the server
        self.replies: dict[str, Any] = {}  # what to answer the server's requests with, by method
        self.silent: set[str] = set()  # methods of the server's requests that get no answer
        self.errors = b""
        self._arrived: queue.Queue[Message | None] = queue.Queue()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_body(self, body: bytes) -> None:
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def send(self, message: object) -> None:
        self.send_body(json.dumps(message).encode())

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, ident: int | str, method: str, params: object = None) -> Message:
        """Send and wait for the answer, result or error."""
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        return self.expect(ident)

    def result(self, ident: int | str, method: str, params: object = None) -> Any:
        answer = self.request(ident, method, params)
        assert "result" in answer, answer
        return answer["result"]

    def expect(self, ident: int | str | None) -> Message:
        """The next answer with this id; requests of the server are answered with null on the way."""
        return self.expect_all({ident})[ident]

    def expect_all(self, idents: set[int | str | None]) -> dict[int | str | None, Message]:
        """The next answers with these ids, in any order."""
        found: dict[int | str | None, Message] = {}
        deadline = time.monotonic() + PATIENCE
        while idents - set(found):
            message = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            assert message is not None, f"the server ended: {self.errors.decode()}"
            if "method" in message:
                self.sent.append(message)
                if "id" in message and message["method"] not in self.silent:
                    self.send({"jsonrpc": "2.0", "id": message["id"], "result": self.replies.get(message["method"])})
                continue
            self.answers.append(message)
            found[message["id"]] = message
        return found

    def initialize(
        self,
        *folders: Path,
        capabilities: Mapping[str, Any] | None = None,
        process: int | None = None,
        options: object = None,
    ) -> Any:
        params = {
            "processId": process,
            "rootUri": None,
            "capabilities": capabilities or {},
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
            "initializationOptions": options,
        }
        result = self.result("initialize", "initialize", params)
        self.notify("initialized", {})
        return result

    def open(self, path: Path, text: str, language: str = "python") -> str:
        uri = path.as_uri()
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def wait_ready(self) -> Any:
        """Poll until every folder's index is up to date."""
        deadline = time.monotonic() + PATIENCE
        while True:
            status = self.result("wait-ready", "haversack/index/status", {})
            if status["state"] in ("ready", "degraded"):
                return status
            assert time.monotonic() < deadline, status
            time.sleep(0.05)

    def shutdown(self) -> int:
        """End as the protocol says; gives the exit code."""
        self.request("shutdown", "shutdown")
        self.notify("exit")
        return self.wait()

    def wait(self, timeout: float = 10.0) -> int:
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = None
            while (line := stream.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if length is None:
                self._arrived.put(None)
                return
            self._arrived.put(json.loads(stream.read(length).decode("utf-8")))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line


@contextmanager
def serving(home: Path, command: Sequence[str] = SERVER) -> Iterator[RawClient]:
    """A client whose server is gone afterwards, whatever happens."""
    client = RawClient(home, command)
    try:
        yield client
    finally:
        client.close()
