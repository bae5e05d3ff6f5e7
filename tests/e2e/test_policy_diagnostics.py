"""Diagnostics on policy files while they are edited, from a real server over its pipes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import FAKE_SERVER, PATIENCE, RawClient, serving

pytestmark = pytest.mark.e2e

PUBLISH = "textDocument/publishDiagnostics"
LOCAL = "ollama/qwen2.5-coder:7b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws/.haversack").mkdir(parents=True)
    (tmp_path / "home/config/haversack").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def client(root: Path) -> Iterator[RawClient]:
    with serving(root / "home") as client:
        yield client


def published(client: RawClient, uri: str) -> list[dict[str, Any]]:
    """The diagnostics of the next notification for `uri`."""
    deadline = time.monotonic() + PATIENCE
    while True:
        message = client._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
        assert message is not None, client.errors
        if "id" in message and "method" in message:
            client.send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        if message.get("method") == PUBLISH and message["params"]["uri"] == uri:
            return message["params"]["diagnostics"]


def change(client: RawClient, uri: str, text: str) -> None:
    document = {"uri": uri, "version": 2}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def codes(diagnostics: list[dict[str, Any]]) -> list[str]:
    return [each["code"] for each in diagnostics]


def policy(**more: object) -> str:
    return json.dumps({"version": 1, "default": {"model": LOCAL}, **more}, ensure_ascii=False)


def test_diagnostics_follow_the_text(client: RawClient, root: Path) -> None:
    """They come when the file is opened, follow every change, and go when it is closed."""
    client.initialize(root / "ws")
    path = root / "ws/.haversack/policy.json"
    uri = client.open(path, '{"version": 1,', "json")
    (broken,) = published(client, uri)
    assert (broken["code"], broken["source"], broken["severity"]) == ("syntax", "haversack", 1)
    assert broken["message"]
    change(client, uri, policy())
    assert published(client, uri) == []
    change(client, uri, policy(allowDegraded=1))
    assert codes(published(client, uri)) == ["wrong_type"]
    path.write_text(policy())
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert codes(published(client, uri)) == ["wrong_type"]
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert published(client, uri) == []
    assert client.shutdown() == 0


@pytest.mark.parametrize(("encoding", "end"), [("utf-8", 12), ("utf-16", 7), ("utf-32", 5)])
def test_columns_are_in_the_clients_encoding(client: RawClient, root: Path, encoding: str, end: int) -> None:
    client.initialize(root / "ws", capabilities={"general": {"positionEncodings": [encoding]}})
    text = '{"version": 1, "default": {"model": "ollama/qwen2.5-coder:7b"},\n"é🦊🦊": 1, "localOnly": 7}'
    uri = client.open(root / "ws/.haversack/policy.json", text, "json")
    unknown, wrong = published(client, uri)
    assert unknown["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": end}}
    start = end + len(': 1, "localOnly": ')
    assert wrong["range"]["start"] == {"line": 1, "character": start}
    assert wrong["range"]["end"] == {"line": 1, "character": start + 1}


def test_a_workspace_is_checked_above_the_user(client: RawClient, root: Path) -> None:
    """Loosening and names of the user's file show in the workspace's; what is wrong in the user's own does not."""
    mine = root / "home/config/haversack/policy.json"
    mine.write_text(policy(localOnly=True, rules=[{"name": "auth", "model": LOCAL}], extra=1))
    client.initialize(root / "ws")
    text = policy(localOnly=False, rules=[{"name": "auth", "model": LOCAL}])
    uri = client.open(root / "ws/.haversack/policy.json", text, "json")
    assert sorted(codes(published(client, uri))) == ["duplicate_rule", "loosening"]
    own = client.open(mine, mine.read_text(), "json")
    assert codes(published(client, own)) == ["unknown_key"]


def test_no_other_document_gets_any(root: Path) -> None:
    """A file of the same name elsewhere, and JSON in general, are none of ours."""
    with serving(root / "home", FAKE_SERVER) as client:
        client.initialize(root / "ws")
        for name in ("policy.json", "src/.haversack/policy.json", ".haversack/other.json", "../.haversack/policy.json"):
            uri = client.open(root / "ws" / name, "{", "json")
            change(client, uri, "[")
            client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        client.result(1, "haversack/index/status", {})
        client.shutdown()
        assert [message for message in client.sent if message["method"] == PUBLISH] == []


def test_quick_changes_end_with_the_last_text(client: RawClient, root: Path) -> None:
    """Checks do not pile up or overtake each other: the last one published is that of the last text."""
    client.initialize(root / "ws")
    uri = client.open(root / "ws/.haversack/policy.json", "{", "json")
    for _ in range(30):
        change(client, uri, policy(allowDegraded=1))
    change(client, uri, policy(records=1, localOnly=2))
    while codes(published(client, uri)) != ["wrong_type", "wrong_type"]:
        pass


def test_the_requests_policy_counts(client: RawClient, root: Path) -> None:
    """`params.policy` is an object; what it restricts stays out for a remote model, and what is wrong is told."""
    (root / "ws/cart.py").write_text("def add_item(cart):\n    return cart\n")
    client.initialize(root / "ws")
    client.wait_ready()
    ask = {"text": "What does add_item do? @cart.py", "model": "openai/gpt-4o"}
    assert client.result(1, "haversack/context", ask)["blocks"]
    strict = {"version": 1, "privacy": {"remote": {"blockedPaths": ["*.py"]}}, "extra": 1}
    answer = client.request(2, "haversack/context", {**ask, "text": "What does add_item do?", "policy": strict})
    assert answer["result"]["blocks"] == []
    assert "unknown_key" in [each["code"] for each in answer["result"]["problems"]]
    assert "error" in client.request(3, "haversack/context", {**ask, "policy": []})
