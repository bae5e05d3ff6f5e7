"""Text, cancellation and files over the wire: what the server holds is what the client has."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import FAKE_SERVER, RawClient, serving

pytestmark = pytest.mark.e2e

CONTEXT = "haversack/context"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """A server around a fake line, for questions of protocol and text."""
    home = tmp_path_factory.mktemp("fake")
    with serving(home, FAKE_SERVER) as raw:
        capabilities = {"general": {"positionEncodings": ["utf-7", "utf-16"]}}
        assert raw.initialize(home, capabilities=capabilities)["capabilities"]["positionEncoding"] == "utf-16"
        yield raw


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, Path]]:
    """The whole product on a small workspace, with a client that cannot watch files."""
    home = tmp_path_factory.mktemp("real")
    workspace = home / "ws"
    workspace.mkdir()
    (home / "secret.txt").write_text("outer-secret")
    (workspace / "link.txt").symlink_to(home / "secret.txt")
    (workspace / "conf.py").write_text("limit = 10\n")
    (workspace / "main.py").write_text("from conf import limit\n\n\ndef run():\n    return limit\n")
    with serving(home) as raw:
        raw.initialize(workspace)
        raw.wait_ready()
        yield raw, workspace
        assert raw.shutdown() == 0


def change(uri: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    places = [{"line": line, "character": character} for line, character in (start, end)]
    return {
        "textDocument": {"uri": uri, "version": version},
        "contentChanges": [{"range": {"start": places[0], "end": places[1]}, "text": text}],
    }


def text_in_answer(client: RawClient, ident: str, uri: str) -> str:
    return client.result(ident, CONTEXT, about(uri))["blocks"][0]["text"]


def about(uri: str, text: str = "hello") -> dict[str, Any]:
    return {"text": text, "activeDocument": {"uri": uri}}


def test_r06_typing_storm(client: RawClient, tmp_path: Path) -> None:
    """Ten thousand edits take seconds, and every fiftieth is followed by a request that sees exactly that text."""
    uri = client.open(tmp_path / "ws" / "a.py", "")
    dice = random.Random(6)
    text, version = "", 1
    checks: dict[int | str | None, str] = {}
    started = time.monotonic()
    for number in range(10_000):
        at = dice.randrange(len(text) + 1)
        inserted = "p" * 500 if number % 500 == 499 else dice.choice("abc é🦊")
        column = len(text[:at].encode("utf-16-le")) // 2
        removed = dice.random() < 0.45 and text[at : at + 1]
        end = column + (len(text[at : at + 1].encode("utf-16-le")) // 2 if removed else 0)
        client.notify(
            "textDocument/didChange", change(uri, version, (0, column), (0, end), "" if removed else inserted)
        )
        text = text[:at] + ("" if removed else inserted) + text[at + bool(removed) :]
        version += 1
        if number % 50 == 49:
            ident = f"storm-{number}"
            checks[ident] = text
            client.send({"jsonrpc": "2.0", "id": ident, "method": CONTEXT, "params": about(uri)})
    answers = client.expect_all(set(checks))
    assert time.monotonic() - started < 10
    for ident, wanted in checks.items():
        assert answers[ident]["result"]["blocks"][0]["text"] == wanted


def test_b66_one_document_under_two_spellings(client: RawClient) -> None:
    """A change under another spelling of the address reaches the open document."""
    opened, changed = "file:///c%3A/My%20Proj/a.py", "file:///C:/My Proj/a.py"
    document = {"uri": opened, "languageId": "python", "version": 1, "text": "old"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    client.notify("textDocument/didChange", change(changed, 2, (0, 0), (0, 3), "new"))
    assert text_in_answer(client, "b66", opened) == "new"


def test_b04_columns_in_bytes(tmp_path: Path) -> None:
    """A client that prefers UTF-8 gets it, for edits and for positions in requests."""
    capabilities = {"general": {"positionEncodings": ["utf-8", "utf-16"]}}
    with serving(tmp_path, FAKE_SERVER) as client:
        result = client.initialize(tmp_path, capabilities=capabilities)
        assert result["capabilities"]["positionEncoding"] == "utf-8"
        uri = client.open(tmp_path / "a.py", 'msg = "🦊 ok"\n')
        params = {"text": "hello", "activeDocument": {"uri": uri, "position": {"line": 0, "character": 14}}}
        assert "position=Position(line=0, character=11)" in repr(client.result(1, CONTEXT, params)["manifest"])
        client.notify("textDocument/didChange", change(uri, 2, (0, 14), (0, 14), "!"))
        assert text_in_answer(client, "b04", uri) == 'msg = "🦊 ok!"\n'


def test_a_request_sees_the_text_of_its_moment(client: RawClient, tmp_path: Path) -> None:
    """Edits that arrive right behind a request do not change its answer."""
    uri = client.open(tmp_path / "ws" / "a.py", "before")
    client.send({"jsonrpc": "2.0", "id": "then", "method": CONTEXT, "params": about(uri, "sleep 0.1")})
    client.notify("textDocument/didChange", change(uri, 2, (0, 0), (0, 6), "after"))
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.expect("then")["result"]["blocks"][0]["text"] == "before"
    assert text_in_answer(client, "now", uri) == ""


def test_preview_has_no_content(client: RawClient, tmp_path: Path) -> None:
    """A preview holds the decisions of a context answer and none of its text."""
    uri = client.open(tmp_path / "ws" / "a.py", "needle")
    full = client.result("full", CONTEXT, about(uri))
    preview = client.result("preview", "haversack/preview", about(uri))
    assert "needle" in json.dumps(full)
    assert "needle" not in json.dumps(preview)
    # A preview is no turn of the conversation: there is no prompt to compare with the last one.
    assert preview["manifest"].pop("prefix") is None
    assert full["manifest"].pop("prefix") is not None
    assert preview["manifest"] == full["manifest"]


def test_r11_cancelled_requests_are_answered_once(client: RawClient) -> None:
    """Cancelling before, during and after gives each request one answer, and -32800 comes at once."""
    dice = random.Random(11)
    idents: set[int | str | None] = set()
    for number in range(100):
        idents.add(number)
        text = dice.choice(["hello", "sleep 0.02", "sleep 30"])
        client.send({"jsonrpc": "2.0", "id": number, "method": CONTEXT, "params": {"text": text}})
        if dice.random() < 0.3:
            client.result(f"pause-{number}", "haversack/index/status", {})
        client.notify("$/cancelRequest", {"id": number})
        if dice.random() < 0.3:
            client.notify("$/cancelRequest", {"id": number})
    started = time.monotonic()
    client.result("fence", "haversack/index/status", {})
    deadline = time.monotonic() + 5
    while len({answer["id"] for answer in client.answers} & idents) < 100 and time.monotonic() < deadline:
        client.result("fence", "haversack/index/status", {})
    assert time.monotonic() - started < 2
    answers = [answer for answer in client.answers if answer["id"] in idents]
    assert len(answers) == 100
    assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32800}


def test_unsaved_text_reaches_the_answer(real: tuple[RawClient, Path]) -> None:
    """With the real line and index: a hundred edits, then a question; the answer holds the unsaved text."""
    client, workspace = real
    uri = client.open(workspace / "conf.py", "limit = 10\n")
    for number in range(100):
        client.notify("textDocument/didChange", change(uri, number + 2, (0, 0), (0, 0), "x"))
    client.notify("textDocument/didChange", change(uri, 200, (0, 0), (0, 100), ""))
    client.notify("textDocument/didChange", change(uri, 201, (0, 8), (0, 10), "99"))
    question = {"text": "what is the limit in @conf.py?"}
    started = time.monotonic()
    result = client.result("ask", CONTEXT, question)
    assert time.monotonic() - started < 2
    prompt = json.dumps(result["prompt"])
    assert "limit = 99" in prompt
    assert "limit = 10" not in prompt
    row = next(item for item in result["manifest"]["items"] if item["path"] == "conf.py" and item["required"])
    assert "unsaved" in row["flags"]
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert "limit = 10" in json.dumps(client.result("closed", CONTEXT, question)["prompt"])


def test_s01_nothing_outside_the_workspace(real: tuple[RawClient, Path]) -> None:
    """Mentions that leave the workspace are refused by name, and nothing of their files is in the answer."""
    client, workspace = real
    outside = str(workspace.parent / "secret.txt")
    for number, value in enumerate(("../secret.txt", outside, "link.txt", "../../etc/passwd", "%2e%2e/secret.txt")):
        answer = client.request(number, CONTEXT, {"text": "look", "mentions": [{"value": value, "kind": "path"}]})
        assert "path_outside_workspace" in json.dumps(answer)
        assert "outer-secret" not in json.dumps(answer)


def test_changed_files_reach_the_index(real: tuple[RawClient, Path]) -> None:
    """What appears on the disk is followed without the client's help, and a rebuild finds it again."""
    client, workspace = real
    (workspace / "b.py").write_text("def second(): pass\n")
    deadline = time.monotonic() + 10
    while (status := client.result("poll", "haversack/index/status", {}))["files"] != 3:
        assert time.monotonic() < deadline, status
        time.sleep(0.05)
    rebuilt = client.result("rebuild", "haversack/index/rebuild", {"workspaceFolder": workspace.as_uri()})
    assert (rebuilt["state"], rebuilt["folders"][0]["name"]) == ("scanning", "ws")
    assert client.wait_ready()["files"] == 3
