"""Inline completion against a real server: columns in units of the wire, typing, and a newer request that wins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import RawClient, serving

pytestmark = pytest.mark.e2e

TEXT = '\U0001f98a\U0001f98a\nmsg = "\U0001f98a ok"\n'


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RawClient]:
    root = tmp_path / "app"
    root.mkdir()
    (root / "m.py").write_text(TEXT)
    with serving(tmp_path) as raw:
        raw.initialize(root)
        raw.wait_ready()
        raw.notify("textDocument/didOpen", textDocument(root, 1, TEXT))
        yield raw
        assert raw.shutdown() == 0


def textDocument(root: Path, version: int, text: str) -> Any:
    uri = (root / "m.py").as_uri()
    return {"textDocument": {"uri": uri, "languageId": "python", "version": version, "text": text}}


def asked(tmp_path: Path, line: int, character: int) -> Any:
    uri = (tmp_path / "app" / "m.py").as_uri()
    return {"uri": uri, "position": {"line": line, "character": character}, "model": "ollama/qwen2.5-coder:7b"}


def test_the_hole_is_where_the_cursor_is(client: RawClient, tmp_path: Path) -> None:
    found = client.result("fim", "haversack/fim", asked(tmp_path, 1, 12))
    assert (found["prefix"], found["suffix"]) == (TEXT[:-2], '"\n')
    assert found["prompt"]["text"] == f'<|fim_prefix|>{TEXT[:-2]}<|fim_suffix|>"\n<|fim_middle|>'
    assert found["prompt"]["form"] == "file"
    assert found["route"]["provider"] == "ollama"
    assert [row["outcome"] for row in found["manifest"]["items"]] == ["included"]


def test_a_document_that_is_not_open_is_named_as_such(client: RawClient) -> None:
    params = {"uri": "file:///nowhere.py", "position": {"line": 0, "character": 0}}
    error = client.request("fim", "haversack/fim", params)["error"]
    assert error["data"]["code"] == "document_not_open"
