"""Faults that people reported of tools like this one, tried on a real server process.

Each test carries the number of its entry in the project's log of public reports.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from e2e.raw_client import serving

CONTEXT = "haversack/context"

pytestmark = pytest.mark.e2e


def test_b22_b33_b94_deleted_files_late_answers_and_two_spellings(tmp_path: Path) -> None:
    """One session: a deleted file answers nothing at once, an answer nobody waits for is ignored, one folder is one."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    ghost = workspace / "ghost.md"
    ghost.write_text("# Zebrafinch\n\nzebrafinch77 rests\n")
    (workspace / "a.py").write_text("def first():\n    return 1\n")
    with serving(tmp_path) as client:
        client.initialize(workspace)
        client.send({"jsonrpc": "2.0", "id": "nobody-asked", "result": None})
        client.send({"jsonrpc": "2.0", "id": 4_711, "error": {"code": 1, "message": "too late"}})
        again = [{"uri": f"{workspace.as_uri()}/", "name": "again"}]
        client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": again, "removed": []}})
        status = client.wait_ready()
        assert [folder["name"] for folder in status["folders"]] == ["ws"]
        question = {"text": "where is zebrafinch77"}
        assert "zebrafinch77 rests" in json.dumps(client.result(1, CONTEXT, question)["blocks"])
        ghost.unlink()
        after = client.result(2, CONTEXT, question)
        assert "zebrafinch77 rests" not in json.dumps(after)
        deadline = time.monotonic() + 10
        while (status := client.result("poll", "haversack/index/status", {}))["files"] != 1:
            assert time.monotonic() < deadline, status
            time.sleep(0.05)
        assert client.shutdown() == 0
        assert b"Traceback" not in client.errors
