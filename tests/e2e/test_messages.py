"""Every request is answered exactly once, whatever the bytes look like. Malformed input against a real process."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.fakes import CANARY
from e2e.raw_client import FAKE_SERVER, RawClient, serving

pytestmark = pytest.mark.e2e

CONTEXT = "haversack/context"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    home = tmp_path_factory.mktemp("home")
    with serving(home, FAKE_SERVER) as raw:
        raw.initialize(home)
        yield raw
        assert raw.request("last", "haversack/index/status", {})["result"]["folders"]
        assert raw.shutdown() == 0


def code(answer: dict[str, Any]) -> int:
    return answer["error"]["code"]


@pytest.mark.parametrize(
    ("body", "ident", "expected"),
    [
        (b"{", None, -32700),
        (b"", None, -32700),
        (b"\xff\xfe{}", None, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": NaN}}', None, -32700),
        (b"[" * 100_000, None, -32700),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, None, -32700),
        (b"null", None, -32600),
        (b"7", None, -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}]', None, -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "x"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "x"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "x"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "x"}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": 901}', 901, -32600),
        (b'{"jsonrpc": "2.0", "id": 902, "method": 5}', 902, -32600),
        (b'{"jsonrpc": "1.0", "id": 903, "method": "x"}', 903, -32600),
        (b'{"id": 904, "method": "x"}', 904, -32600),
        (b'{"jsonrpc": "2.0", "id": 905, "method": "no/such/method"}', 905, -32601),
        (b'{"jsonrpc": "2.0", "id": 906, "method": "haversack/context"}', 906, -32602),
        (b'{"jsonrpc": "2.0", "id": 907, "method": "haversack/index/status", "params": []}', 907, -32602),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "no"}', "\ufffd", -32601),
        (b'{"jsonrpc": "2.0", "id": 908, "method": "initialize", "params": {"capabilities": {}}}', 908, -32600),
    ],
)
def test_malformed_messages_get_their_code(
    client: RawClient, body: bytes, ident: int | str | None, expected: int
) -> None:
    """Each kind of damage has its code; the id is echoed where it can be read."""
    client.send_body(body)
    answer = client.expect(ident)
    assert code(answer) == expected
    assert "Traceback" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "params.text: missing"),
        ({"text": 5}, "params.text"),
        ({"text": None}, "params.text"),
        ({"text": "a", "budgetTokens": -1}, "params.budgetTokens"),
        ({"text": "a", "budgetTokens": "12"}, "params.budgetTokens"),
        ({"text": "a", "budgetTokens": True}, "params.budgetTokens"),
        ({"text": "a", "mentions": "x"}, "params.mentions"),
        ({"text": "a", "mentions": [{"value": "a"}, {"value": "b", "kind": "planet"}]}, "params.mentions[1].kind"),
        ({"text": "a", "mentions": [[]]}, "params.mentions[0]"),
        ({"text": "a", "history": [{"role": "king", "content": ""}]}, "params.history[0].role"),
        ({"text": "a", "activeDocument": {"uri": "file:///a", "position": {"line": 0}}}, "position.character: missing"),
        ({"text": "a", "activeDocument": {"uri": []}}, "params.activeDocument.uri"),
        ({"text": "a", "supplied": {}}, "params.supplied"),
        ({"text": "a", "eligibility": {"purpose": "A"}}, "params.eligibility.scope: missing"),
        ({"text": "a", "workspaceFolder": "file:///nowhere"}, "file:///nowhere"),
    ],
)
def test_params_that_do_not_fit_name_the_field(client: RawClient, params: object, field: str) -> None:
    """-32602 says which field is wrong."""
    answer = client.request("fit", CONTEXT, params)
    assert code(answer) == -32602
    assert field in answer["error"]["message"]


def test_standard_params_that_do_not_fit(client: RawClient) -> None:
    """A standard notification with wrong parameters is dropped and the next message is handled."""
    client.notify("textDocument/didOpen", {"textDocument": {"uri": 5}})
    client.notify("textDocument/didChange", {"textDocument": {}, "contentChanges": [{"range": -1}]})
    client.notify("haversack/diagnostics", {"uri": "file:///a"})
    client.notify("$/setTrace", {"value": "nonsense"})
    client.notify("$/cancelRequest", {"id": {}})
    client.notify("$/cancelRequest", None)
    assert "result" in client.request("after", "haversack/index/status", {})


def test_unknown_fields_are_ignored_and_reported(client: RawClient) -> None:
    """A misspelt optional field does not fail the request and does not go unnoticed."""
    params = {"text": "hello", "bugdetTokens": 1, "activeDocument": {"uri": "untitled:1", "caret": 2}}
    problems = client.result("unknown", CONTEXT, params)["problems"]
    assert [problem["code"] for problem in problems] == ["unknown_field"] * 2
    assert "params.bugdetTokens" in problems[0]["message"]
    assert "params.activeDocument.caret" in problems[1]["message"]
    half = client.result("half", CONTEXT, {"text": "hello \ud83d", "\ud800": [{"\udfff": "\ud800"}]})["problems"]
    assert [problem["message"] for problem in half] == ["params.\ufffd is not a field of this request."]


def test_errors_for_users_carry_code_and_remedy(client: RawClient) -> None:
    """A failure the user can act on keeps its name, its remedy and its details."""
    error = client.request("refused", CONTEXT, {"text": "refuse /etc/passwd"})["error"]
    assert error == {
        "code": -32803,
        "message": "That is outside.",
        "data": {
            "code": "path_outside_workspace",
            "remedy": "Name another file.",
            "details": {"path": "/etc/passwd"},
        },
    }


def test_internal_errors_tell_nothing(client: RawClient) -> None:
    """Neither the answer nor the log holds the message of an unexpected exception, and the answer no path."""
    answer = client.request("crashed", CONTEXT, {"text": "crash"})
    assert code(answer) == -32603
    assert CANARY not in json.dumps(answer)
    assert ".py" not in json.dumps(answer)
    time.sleep(0.1)
    assert b"RuntimeError" in client.errors
    assert CANARY.encode() not in client.errors


@pytest.mark.parametrize("word", ["nan", "infinite", "surrogate"])
def test_b92_results_that_are_no_json_become_errors(client: RawClient, word: str) -> None:
    """A result with NaN or half a character is an error reply, and the server goes on."""
    assert code(client.request(f"b92-{word}", CONTEXT, {"text": word})) == -32603


def test_large_results_arrive_whole(client: RawClient) -> None:
    """Thirty megabytes pass."""
    result = client.result("long", CONTEXT, {"text": f"long {30_000_000}"})
    assert len(result["blocks"][0]["text"]) == 30_000_000


def test_prints_do_not_reach_the_protocol(client: RawClient) -> None:
    """Whatever prints, from Python or below it, lands on stderr."""
    assert "result" in client.request("print", CONTEXT, {"text": "print"})
    time.sleep(0.1)
    assert b"stray output" in client.errors
    assert b"abc" in client.errors


def test_open_ids_cannot_be_used_again(client: RawClient) -> None:
    """A second request with the id of an open one is refused; the first one still gets its answer."""
    client.send({"jsonrpc": "2.0", "id": "twice", "method": CONTEXT, "params": {"text": "sleep 0.2"}})
    client.send({"jsonrpc": "2.0", "id": "twice", "method": CONTEXT, "params": {"text": "hello"}})
    assert code(client.expect("twice")) == -32600
    assert "result" in client.expect("twice")


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -4\r\n\r\n",
        b"Content-Length: 99999999999\r\nContent-Length: 3\r\n\r\n",
        b"Content-Type: text/plain\r\n\r\n",
        b"Content-Length: four\r\n\r\nabcd",
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n",
        b"\r\n\r\n",
        b"garbage",
    ],
)
def test_r12_header_abuse_is_answered_and_survived(client: RawClient, header: bytes) -> None:
    """A broken header is a parse error with no id, and the next good message is found."""
    before = len(client.answers)
    client.write(header)
    client.send({"jsonrpc": "2.0", "id": "good", "method": "haversack/index/status", "params": {}})
    client.expect("good")
    faults = client.answers[before:-1]
    assert faults
    assert all(fault["id"] is None and code(fault) == -32700 for fault in faults)


def test_r12_slow_and_split_messages(client: RawClient) -> None:
    """A message split at every byte is one message."""
    body = json.dumps({"jsonrpc": "2.0", "id": "split", "method": "haversack/index/status", "params": {}}).encode()
    for byte in b"Content-Length: %d\r\n\r\n%b" % (len(body), body):
        client.write(bytes([byte]))
    assert "result" in client.expect("split")


def test_r05_every_request_is_answered_once(client: RawClient) -> None:
    """Hundreds of generated messages, good and bad: each readable id gets exactly one answer with a fitting code."""
    dice = random.Random(5)
    values: list[Any] = [None, True, 0, -1, 1.5, "", "a", "\ud800", [], {}, [1], {"a": {"jsonrpc": "2.0"}}, 2**40]
    methods = [CONTEXT, "haversack/preview", "haversack/index/status", "no/such", "textDocument/hover", "initialize"]
    fields = ["text", "activeDocument", "mentions", "history", "model", "budgetTokens", "workspaceFolder", "extra"]
    before = len(client.answers)
    expected: list[Any] = []
    for number in range(600):
        params: Any = {name: dice.choice(values) for name in dice.sample(fields, dice.randrange(4))}
        params = dice.choice([params, params, params, {"text": "hello"}, dice.choice(values)])
        message: dict[str, Any] = {
            "jsonrpc": dice.choice(["2.0"] * 9 + ["1.0"]),
            "id": dice.choice([number, f"r{number}", number, f"r{number}", 1.5, {}, None]),
            "method": dice.choice([*methods, 5]),
            "params": params,
        }
        for name in list(message):
            if dice.random() < 0.03:
                del message[name]
        if "id" in message:
            ident = message["id"]
            expected.append(ident if isinstance(ident, int | str) else None)
        elif not isinstance(message.get("method"), str) or message.get("jsonrpc") != "2.0":
            expected.append(None)
        client.send(message)
    started = time.monotonic()
    client.request("next", "haversack/index/status", {})
    assert time.monotonic() - started < 5
    answers = client.answers[before:-1]
    waiting = sorted(map(repr, expected))
    deadline = time.monotonic() + 5
    while len(answers) < len(waiting) and time.monotonic() < deadline:
        client.request(f"poll-{len(client.answers)}", "haversack/index/status", {})
        answers = [a for a in client.answers[before:] if not str(a["id"]).startswith(("next", "poll"))]
    assert sorted(repr(answer["id"]) for answer in answers) == waiting
    allowed = {-32700, -32600, -32601, -32602}
    assert {code(answer) for answer in answers if "error" in answer} <= allowed
    assert "Traceback" not in json.dumps(answers)


def test_trivial_requests_are_quick_while_readers_block(client: RawClient) -> None:
    """Six requests that block reading threads do not hold up a seventh that needs none."""
    for number in range(6):
        client.send({"jsonrpc": "2.0", "id": f"b{number}", "method": CONTEXT, "params": {"text": "block 1"}})
    started = time.monotonic()
    client.request("quick", "haversack/index/status", {})
    assert time.monotonic() - started < 0.2
    assert all("result" in answer for answer in client.expect_all({f"b{number}" for number in range(6)}).values())


def test_tcp_speaks_the_same(tmp_path: Path) -> None:
    """The same server answers on a loopback port and ends with the connection."""
    import socket
    import subprocess
    import sys

    command = [sys.executable, "-m", "haversack", "serve", "--tcp", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        port = int(line.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            body = b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}'
            connection.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            assert b"-32002" in connection.recv(4_096)
        assert process.wait(5) == 1


def test_tcp_refuses_addresses_others_can_reach() -> None:
    """Without --allow-remote only loopback is listened on."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "haversack", "serve", "--tcp", "0.0.0.0:0"]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    assert done.returncode == 2
    assert b"--allow-remote" in done.stderr
