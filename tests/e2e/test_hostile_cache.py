"""A cache folder that cannot be used costs the index, not the answers, and nobody waits for it for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.raw_client import serving

pytestmark = pytest.mark.e2e


def test_a_cache_that_cannot_be_written_ends_as_degraded(tmp_path: Path) -> None:
    """The state says so instead of staying at scanning, and words are counted in the files."""
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    workspace.mkdir()
    (home / "cache").write_text("a file in its place")
    (workspace / "a.py").write_text("def only_one():\n    pass\n")
    with serving(home) as client:
        client.initialize(workspace)
        status = client.wait_ready()
        assert status["state"] == "degraded"
        assert any("cannot be written" in problem for problem in status["folders"][0]["problems"])
        result = client.result("ask", "haversack/context", {"text": "only_one"})
        assert "only_one" in result["blocks"][0]["text"]
        assert client.shutdown() == 0
