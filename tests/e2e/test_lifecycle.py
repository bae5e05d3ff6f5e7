"""How a server process starts, ends, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from e2e.raw_client import FAKE_SERVER, RawClient, serving

pytestmark = pytest.mark.e2e


def ends_within(client: RawClient, seconds: float) -> int:
    started = time.monotonic()
    code = client.wait(seconds + 5)
    assert time.monotonic() - started < seconds
    return code


def test_exit_codes(tmp_path: Path) -> None:
    """0 after shutdown and exit, 1 after exit alone; shutdown cancels what is open and refuses what comes after it."""
    with serving(tmp_path, FAKE_SERVER) as client:
        client.initialize(tmp_path)
        client.send({"jsonrpc": "2.0", "id": 0, "method": "haversack/context", "params": {"text": "sleep 30"}})
        client.send({"jsonrpc": "2.0", "id": 1, "method": "shutdown"})
        answers = client.expect_all({0, 1})
        assert answers[0]["error"]["code"] == -32800
        assert answers[1] == {"jsonrpc": "2.0", "id": 1, "result": None}
        assert client.request(2, "haversack/index/status", {})["error"]["code"] == -32600
        client.notify("exit")
        assert client.wait() == 0
    with serving(tmp_path, FAKE_SERVER) as client:
        client.initialize(tmp_path)
        client.notify("exit")
        assert client.wait() == 1


def test_before_initialize(tmp_path: Path) -> None:
    """Requests are refused, notifications dropped, and exit still ends the process."""
    with serving(tmp_path, FAKE_SERVER) as client:
        assert client.request(1, "haversack/index/status", {})["error"]["code"] == -32002
        assert client.request(2, "shutdown")["error"]["code"] == -32002
        client.notify("textDocument/didOpen", {})
        assert client.request(3, "initialize")["error"]["code"] == -32602
        assert client.request(4, "initialize", {"rootUri": "file:///w"})["error"]["code"] == -32602
        client.notify("exit")
        assert client.wait() == 1


def test_end_of_input_ends_the_process_while_work_is_stuck(tmp_path: Path) -> None:
    """Two seconds after stdin closed the process is gone, even with reading threads that hang."""
    with serving(tmp_path, FAKE_SERVER) as client:
        client.initialize(tmp_path)
        for number in range(5):
            client.send({"jsonrpc": "2.0", "id": number, "method": "haversack/context", "params": {"text": "block 60"}})
        client.result("ping", "haversack/index/status", {})
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert ends_within(client, 2.0) == 1


def test_a_client_that_does_not_read_does_not_hold_the_process(tmp_path: Path) -> None:
    """A full pipe to the client stops neither the loop nor the end."""
    process = subprocess.Popen(FAKE_SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    bodies = [b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}']
    bodies += [
        b'{"jsonrpc":"2.0","id":%d,"method":"haversack/context","params":{"text":"long 200000"}}' % n
        for n in range(2, 20)
    ]
    bodies += [b'{"jsonrpc":"2.0","id":99,"method":"shutdown"}', b'{"jsonrpc":"2.0","method":"exit"}']
    for body in bodies:
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    process.stdin.flush()
    assert process.wait(10) == 0


def test_death_of_the_parent_ends_the_process(tmp_path: Path) -> None:
    """When the process that `processId` names dies, the server goes within two seconds though stdin stays open."""
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with serving(tmp_path, FAKE_SERVER) as client:
        client.initialize(tmp_path, process=parent.pid)
        client.result("ping", "haversack/index/status", {})
        parent.kill()
        assert ends_within(client, 2.0) == 1
        parent.wait()


def test_no_worker_outlives_its_server(tmp_path: Path) -> None:
    """However the server ends, its indexing processes are gone soon after, and before that they were there."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    for number in range(200):
        (workspace / f"m{number}.py").write_text("def f():\n    pass\n" * 50)
    for end in ("kill", "exit"):
        with serving(tmp_path) as client:
            client.initialize(workspace)
            client.result("ping", "haversack/index/status", {})
            server = psutil.Process(client.process.pid)
            deadline = time.monotonic() + 10
            while not (children := server.children(recursive=True)) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert children
            if end == "kill":
                client.process.kill()
            else:
                assert client.shutdown() == 0
            client.wait()
            psutil.wait_procs(children, timeout=5, callback=None)
            # Where nothing collects orphans, an ended process stays listed as a zombie.
            alive = [each for each in children if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
            assert not alive, end
