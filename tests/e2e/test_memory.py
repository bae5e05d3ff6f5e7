"""Memories and rules files through a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.raw_client import serving

pytestmark = pytest.mark.e2e


def test_memories_and_rules_reach_the_prompt(tmp_path: Path) -> None:
    """Kept, found, changed, exported, removed and imported by the methods an editor calls; errors name the field."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def add_item(cart, item):\n    cart.append(item)\n")
    (folder / "AGENTS.md").write_text("Use tabs. RULE-9\n")
    note = {"category": "Rule", "title": "Money", "content": "Use decimals. NOTE-1", "scope": "project"}
    with serving(tmp_path) as client:
        client.initialize(folder)
        client.wait_ready()
        kept = client.result(1, "haversack/memory/add", {**note, "keywords": ["money"]})
        assert (kept["category"], kept["workspaceFolder"], kept["keywords"]) == ("Rule", folder.as_uri(), ["money"])
        refused = client.request(2, "haversack/memory/add", {**note, "category": "gossip"})["error"]
        assert (refused["code"], refused["data"]["details"]["field"]) == (-32602, "category")
        (found,) = client.result(3, "haversack/memory/search", {"query": "how is money rounded"})["memories"]
        assert (found["id"], found["score"]) == (kept["id"], 1.0)
        changed = client.result(4, "haversack/memory/update", {"id": kept["id"], "title": "Amounts"})
        assert (changed["title"], changed["keywords"]) == ("Amounts", ["money"])
        messages = client.result(5, "haversack/context", {"text": "How does add_item work?"})["prompt"]["messages"]
        assert "RULE-9" in messages[0]["content"]
        assert "NOTE-1" in messages[-1]["content"]
        (path,) = client.result(6, "haversack/memory/export", {})["paths"]
        assert "NOTE-1" in (folder / path).read_text()
        assert client.result(7, "haversack/memory/delete", {"id": kept["id"]}) == {**changed, "score": None}
        assert client.result(8, "haversack/memory/list", {})["memories"] == []
        assert client.result(9, "haversack/memory/import", {"workspaceFolder": "shop"})["added"] == [kept["id"]]
        assert client.shutdown() == 0
