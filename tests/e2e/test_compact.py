"""`haversack/compact`, and histories in the form of providers, through a real server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import RawClient, serving
from sealed_talk import seal

from haversack.lsp import to_lsp, wire
from haversack.types import Message, Role

pytestmark = pytest.mark.e2e

COMPACT = "haversack/compact"
WORDS = "Some words about it and nothing else. " * 20
TURNS = [
    {"role": role, "content": f"{role} {at}: src/part_{at}.py must stay. {WORDS}", "id": f"{role}{at}"}
    for at in range(10)
    for role in ("user", "assistant")
]
OFFER = {"experimental": {"haversack": {"summarize": True}}}


def start(client: RawClient, folder: Path, offer: dict[str, Any] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    client.initialize(folder, capabilities=offer)


def test_it_acts_on_request_and_tells_where_summaries_came_from(tmp_path: Path) -> None:
    """Far below any window; the last messages stay, and each summary names the messages it stands for."""
    with serving(tmp_path) as client:
        start(client, tmp_path / "shop")
        done = client.result(1, COMPACT, {"history": TURNS, "model": "openai/gpt-4o"})
        assert (done["history"]["tier"], done["providerMessages"]) == ("PLAIN_FALLBACK", None)
        assert done["history"]["tokensAfter"] <= done["target"] < done["history"]["tokensBefore"]
        assert [each["content"] for each in done["messages"][-4:]] == [each["content"] for each in TURNS[-4:]]
        (summary,) = done["history"]["summaries"]
        assert summary["ids"] == [TURNS[at]["id"] for at in summary["messages"]]
        nothing = client.result(2, COMPACT, {"history": TURNS[:2]})
        assert nothing["history"]["tier"] == "NONE"
        assert nothing["history"]["note"].startswith("Nothing was shortened.")
        refused = client.request(3, COMPACT, {"history": TURNS, "budgetTokens": 10})["error"]
        assert refused["data"]["code"] == "context_window_exceeded"
        assert client.shutdown() == 0


def test_the_editors_model_writes_summaries_and_what_is_restricted_is_kept_from_it(tmp_path: Path) -> None:
    """The client's `haversack/summarize` is asked; with `localOnly` it is not, since nobody knows where it runs."""
    secret = {"role": "user", "content": f"The plan says FALCON. {WORDS}", "origins": ["private/plan.md"]}
    talk = [secret, *TURNS]
    private = {"version": 1, "privacy": {"restrictedPaths": ["private/**"]}}
    with serving(tmp_path) as client:
        client.replies["haversack/summarize"] = {"text": "They spoke of parts."}
        start(client, tmp_path / "shop", OFFER)
        here = client.result(1, COMPACT, {"history": talk, "localOnly": True})
        assert (here["history"]["tier"], asked(client)) == ("PLAIN_FALLBACK", [])
        done = client.result(2, COMPACT, {"history": talk, "policy": private})
        assert done["history"]["tier"] == "MULTI_CHUNK"
        assert any("They spoke of parts." in each["content"] for each in done["messages"])
        assert asked(client)
        params = [each["params"] for each in client.sent if each["method"] == "haversack/summarize"]
        assert all(each["maxTokens"] > 0 and each["timeoutMs"] == 20_000 for each in params)
        assert not any("FALCON" in text for text in asked(client))
        assert client.shutdown() == 0


def test_a_model_that_fails_costs_a_problem_and_not_the_answer(tmp_path: Path) -> None:
    """An empty summary is none: the digest takes its place and the client is told."""
    with serving(tmp_path) as client:
        client.replies["haversack/summarize"] = {"text": "  "}
        start(client, tmp_path / "shop", OFFER)
        done = client.result(1, COMPACT, {"history": TURNS})
        assert done["history"]["tier"] == "PLAIN_FALLBACK"
        assert {each["stage"] for each in done["problems"]} == {"compact"}
        assert client.shutdown() == 0


def test_it_can_be_cancelled_while_a_model_writes(tmp_path: Path) -> None:
    """The request ends at once, and the server answers the next one."""
    with serving(tmp_path) as client:
        client.silent.add("haversack/summarize")
        start(client, tmp_path / "shop", OFFER)
        client.send({"jsonrpc": "2.0", "id": 1, "method": COMPACT, "params": {"history": TURNS}})
        until = time.monotonic() + 20
        while not asked(client) and time.monotonic() < until:
            client.result(2, "haversack/index/status", {})  # what the server asks is read on the way to an answer
        client.notify("$/cancelRequest", {"id": 1})
        assert client.expect(1)["error"]["code"] == -32800
        assert client.result(3, COMPACT, {"history": TURNS, "localOnly": True})["history"]["summaries"]
        assert client.shutdown() == 0


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_histories_of_providers_come_back_in_their_form(tmp_path: Path, form: str) -> None:
    """In `haversack/context` and in `haversack/compact`: calls and results as that API has them."""
    calls: dict[str, list[dict[str, Any]]] = {
        "openai": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        ],
        "anthropic": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]},
        ],
    }
    talk = [{"role": each["role"], "content": each["content"]} for each in TURNS]
    given = {"format": form, "messages": [talk[0], *calls[form], talk[1], *talk[2:]]}
    given |= {"system": "Be brief."} if form == "anthropic" else {}
    with serving(tmp_path) as client:
        start(client, tmp_path / "shop")
        prompt = client.result(1, "haversack/context", {"text": "And now?", "providerHistory": given})["prompt"]
        sent = prompt["providerMessages"]
        assert sent["format"] == form
        assert all(call in sent["messages"] for call in calls[form][:1])
        assert "And now?" in str(sent["messages"][-1]["content"])
        assert ("Be brief." in str(sent["system"])) is (form == "anthropic")
        done = client.result(2, COMPACT, {"providerHistory": given})["providerMessages"]
        assert done["messages"][-1] == talk[-1]
        assert len(done["messages"]) < len(given["messages"])
        for wrong, path in (
            ({"providerHistory": {**given, "format": "smoke signals"}}, "params.providerHistory.format"),
            ({"providerHistory": {**given, "messages": [{"role": "king"}]}}, "params.providerHistory[0].role"),
            ({"providerHistory": given, "history": TURNS}, "params.providerHistory: stands beside"),
        ):
            assert path in client.request(3, COMPACT, wrong)["error"]["message"]
        assert client.shutdown() == 0


def test_sealed_messages_are_refused_by_their_place(tmp_path: Path) -> None:
    """Without the key nobody can shorten them, and to drop them unread would lose what they say."""
    locked = wire.write(to_lsp.sealed_message(seal(Message(Role.USER, "hidden", id="m0"), 0)))
    with serving(tmp_path) as client:
        start(client, tmp_path / "shop")
        error = client.request(1, COMPACT, {"history": [TURNS[0], locked]})["error"]
        assert (error["code"], error["message"]) == (-32602, "params.history[1]: a sealed message can't be shortened.")
        assert client.shutdown() == 0


def asked(client: RawClient) -> list[str]:
    """The texts that the editor's model was asked about."""
    return [each["params"]["text"] for each in client.sent if each["method"] == "haversack/summarize"]
