"""A sealed conversation against a real server: only the client has the key."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import SERVER, RawClient, serving

from haversack import sealing, turns
from haversack.lsp import to_lsp, wire
from haversack.tokens import counter
from haversack.types import Message, OpenedRecord, Role, ToolCall

pytestmark = pytest.mark.e2e

REMOTE = "openai/gpt-4o"
KEY = b"k" * 32
COUNT = counter("o200k").count  # of the model asked for, so that stated sizes are the real ones
AGING_SERVER = (sys.executable, str(Path(__file__).with_name("aging_server.py")))
TALK = (
    Message(Role.USER, "canary one: where is the budget?"),
    Message(Role.ASSISTANT, "canary two", (ToolCall("t1", "read_file", '{"path": "canary"}'),)),
    Message(Role.TOOL, "canary three", tool_call_id="t1", name="read_file"),
    Message(Role.ASSISTANT, "canary four"),
)
SEALED = tuple(
    sealing.seal(message, KEY, ref=f"message:{at}", session="s", sequence=at, count=COUNT)
    for at, message in enumerate(TALK)
)
CLOSED = [wire.write(to_lsp.sealed_message(message)) for message in SEALED]
CLEAR: list[Any] = [
    {"role": "user", "content": TALK[0].content},
    {
        "role": "assistant",
        "content": TALK[1].content,
        "toolCalls": [{"id": "t1", "name": "read_file", "arguments": '{"path": "canary"}'}],
    },
    {"role": "tool", "content": TALK[2].content, "toolCallId": "t1", "name": "read_file"},
    {"role": "assistant", "content": TALK[3].content},
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One server for all tests that leave it running. Nothing of any of them is in its log."""
    home = tmp_path_factory.mktemp("home")
    with serving(home) as raw:
        initialize(raw, home)
        yield raw
        assert raw.shutdown() == 0
    assert b"canary" not in raw.errors
    assert b"Traceback" not in raw.errors


def initialize(client: RawClient, home: Path) -> None:
    folder = home / "ws"
    folder.mkdir()
    (folder / "budget.py").write_text("def split_budget(total, parts):\n    return [total // parts] * parts\n")
    client.initialize(folder)
    client.wait_ready()


def ask(client: RawClient, history: list[Any], ident: str = "ask") -> Any:
    params = {"text": "how does split_budget work?", "history": history, "model": REMOTE}
    return client.result(ident, "haversack/context", params)


def record(opened: OpenedRecord) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in opened.tool_calls]
    return {
        "ref": opened.ref,
        "content": opened.content,
        "salt": opened.salt,
        "toolCalls": calls,
        "name": opened.name,
    }


def opened(asked: Any) -> list[dict[str, Any]]:
    """What the client makes of `toDecrypt`; the messages come back as they were sent."""
    known = {closed["sealed"]["ref"]: (closed, message) for closed, message in zip(CLOSED, SEALED, strict=True)}
    pairs = [(each, *known[each["sealed"]["ref"]]) for each in asked["toDecrypt"]]
    assert all(without_null(each) == without_null(closed) for each, closed, _ in pairs)
    return [record(sealing.open_record(message, KEY)) for _, _, message in pairs]


def without_null(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value is not None}


def go_on(client: RawClient, turn: str, records: list[dict[str, Any]]) -> Any:
    """The result, or the code of the error."""
    answer = client.request("go on", "haversack/continue", {"turn": turn, "records": records})
    if "error" in answer:
        assert "canary" not in json.dumps(answer)
        return answer["error"]["data"]["code"]
    return answer["result"]


def test_continued_it_is_the_answer_of_the_clear_conversation(client: RawClient) -> None:
    """First the question what to open and nothing else; then every part of the reply but times and record."""
    first = ask(client, CLOSED)
    assert first["status"] == "awaitingDecrypt"
    assert [each["sealed"]["ref"] for each in first["toDecrypt"]] == [f"message:{at}" for at in range(4)]
    assert first["prompt"]["messages"] == first["blocks"] == first["manifest"]["items"] == []
    assert first["recordId"] is None
    assert "canary" not in json.dumps(first)
    assert "split_budget" not in json.dumps(first)
    last, clear = go_on(client, first["turn"], opened(first)), ask(client, CLEAR)
    assert last["status"] == clear["status"] == "completed"
    assert "canary three" in json.dumps(last["prompt"])
    assert last["recordId"]
    for result in (last, clear):
        # How much of a prompt is as before is measured where a session remembers it: not of sealed conversations.
        del result["recordId"], result["manifest"]["timings"], result["manifest"]["prefix"]
    assert last == clear


def test_each_wrong_continue_has_its_error(client: RawClient) -> None:
    """Unknown turn, wrong records, then the right ones, then the same again; no text of a message in any error."""
    first = ask(client, CLOSED)
    turn, right = first["turn"], opened(first)
    assert go_on(client, "nobody", right) == "sealed_unknown_turn"
    assert go_on(client, turn, right[1:]) == "sealed_record_missing"
    assert go_on(client, turn, [*right, right[0]]) == "sealed_record_duplicated"
    assert go_on(client, turn, [*right, {**right[0], "ref": "message:9"}]) == "sealed_record_unexpected"
    assert go_on(client, turn, [{**right[0], "content": "canary forged"}, *right[1:]]) == "sealed_record_tampered"
    exchanged = [{**right[0], "ref": "message:3"}, *right[1:3], {**right[3], "ref": "message:0"}]
    assert go_on(client, turn, exchanged) == "sealed_record_swapped"
    assert go_on(client, turn, [{**right[0], "salt": "canary"}, *right[1:]]) == "sealed_malformed"
    assert go_on(client, turn, right)["status"] == "completed"
    assert go_on(client, turn, right) == "sealed_turn_replayed"


def test_a_client_may_give_up_a_turn(client: RawClient) -> None:
    """It is gone; to give up what is over or unknown changes nothing."""
    first = ask(client, CLOSED)
    for turn in (first["turn"], "nobody", first["turn"]):
        client.notify("haversack/abandon", {"turn": turn})
    assert go_on(client, first["turn"], opened(first)) == "sealed_turn_abandoned"
    assert go_on(client, "nobody", []) == "sealed_unknown_turn"


def test_a_turn_ends_when_the_rules_change(client: RawClient) -> None:
    """What was gathered may be restricted by now."""
    first = ask(client, CLOSED)
    client.replies["workspace/configuration"] = None
    settings = {"haversack": {"privacy": {"restrictedPaths": ["ws/"]}}}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    try:
        assert go_on(client, first["turn"], opened(first)) == "sealed_turn_outdated"
    finally:
        client.notify("workspace/didChangeConfiguration", {"settings": {"haversack": {}}})


def test_only_so_many_turns_wait(client: RawClient) -> None:
    """The oldest hears that it has expired; the next one still waits."""
    asked = [ask(client, CLOSED, f"ask {at}") for at in range(turns.MOST_WAITING + 1)]
    assert go_on(client, asked[0]["turn"], opened(asked[0])) == "sealed_turn_expired"
    assert go_on(client, asked[1]["turn"], opened(asked[1]))["status"] == "completed"
    for each in asked:
        client.notify("haversack/abandon", {"turn": each["turn"]})


def test_a_turn_expires_to_the_second(tmp_path: Path) -> None:
    """On a server whose clock a file sets."""
    clock = tmp_path / "data" / "clock"
    clock.parent.mkdir()
    clock.write_text("0")
    with serving(tmp_path, AGING_SERVER) as client:
        initialize(client, tmp_path)
        first, second = ask(client, CLOSED), ask(client, CLOSED)
        assert first["expiresIn"] == turns.WAIT
        clock.write_text(str(turns.WAIT - 0.5))
        assert go_on(client, first["turn"], opened(first))["status"] == "completed"
        clock.write_text(str(turns.WAIT))
        assert go_on(client, second["turn"], opened(second)) == "sealed_turn_expired"
        assert client.shutdown() == 0


def test_a_cancelled_question_has_no_turn_and_shutdown_ends_those_that_wait(tmp_path: Path) -> None:
    """One answer each, nothing is assembled any more, and the server ends."""
    with serving(tmp_path, SERVER) as client:
        initialize(client, tmp_path)
        params = {"text": "how does split_budget work?", "history": CLOSED, "model": REMOTE}
        client.send({"jsonrpc": "2.0", "id": "given up", "method": "haversack/context", "params": params})
        client.notify("$/cancelRequest", {"id": "given up"})
        answer = client.expect("given up")
        assert answer["error"]["code"] == -32800
        assert "turn" not in json.dumps(answer)
        first = ask(client, CLOSED)
        client.result("shutdown", "shutdown")
        params = {"turn": first["turn"], "records": opened(first)}
        assert client.request("late", "haversack/continue", params)["error"]["code"] == -32600
        client.notify("exit")
        assert client.wait() == 0
    assert b"canary" not in client.errors
