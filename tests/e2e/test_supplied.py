"""Supplied items against a real server: each hostile one costs itself alone, and nothing of it comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.raw_client import RawClient, serving
from supplying import SCOPE, binary, eligibility, item, sha

pytestmark = pytest.mark.e2e

CANARY = "canary-6b20"
LOCAL, REMOTE = "ollama/llama3.2", "openai/gpt-4o"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    home = tmp_path_factory.mktemp("home")
    with serving(home) as raw:
        raw.initialize(home)
        yield raw
        assert raw.shutdown() == 0


def ask(client: RawClient, items: list[Any], **more: Any) -> Any:
    params = {"text": "hello", "supplied": items, "eligibility": SCOPE, "model": REMOTE, **more}
    return client.result("ask", "haversack/context", params)


def rows(result: Any) -> dict[str, tuple[str, ...]]:
    """Outcome and reasons of each supplied row, by id."""
    items = [row for row in result["manifest"]["items"] if row["source"] == "supplied"]
    return {row["id"]: (row["outcome"], *row["reasons"]) for row in items}


def nested(levels: int) -> Any:
    value: Any = CANARY
    for _ in range(levels):
        value = [value]
    return value


def test_hostile_items_cost_themselves_alone(client: RawClient) -> None:
    """Wrong types, depth, endless data, false digests, ids given twice: a row and a problem each."""
    hostile: list[Any] = [
        None,
        CANARY,
        [[CANARY]],
        {"id": {CANARY: 1}, "title": "t", "text": "x"},
        {"id": "z", "title": "t", "text": CANARY, "score": 1e400},
        item("deep", content={"kind": "json", "value": nested(600)}),
        item("deep type", text=None, content=nested(600)),
        item("large", content=binary(b"", data="A" * 8_000_000)),
        item("false", content=binary(CANARY.encode(), digest=sha("other"))),
        item("odd", content={"kind": CANARY}),
        item("when", CANARY, eligibility=eligibility(freshUntil=CANARY)),
        item("good", CANARY),
    ]
    raw = json.dumps({"text": "hello", "supplied": hostile, "eligibility": SCOPE, "model": REMOTE})
    raw = raw.replace("Infinity", "1e999")
    good = {"id": "good", "title": "the good one", "text": "served text"}
    params = raw.replace('"supplied": [', f'"supplied": [{json.dumps(good)}, ', 1)
    head = '{"jsonrpc": "2.0", "id": "hostile", "method": "haversack/context", "params": '
    client.send_body(f"{head}{params}}}".encode())
    result = client.expect("hostile")["result"]
    found = rows(result)
    assert len(found) == len(hostile) + 1
    assert found.pop("supplied:good") == ("included",)
    assert set(found.values()) == {("excluded", "malformed")}
    assert [problem["code"] for problem in result["problems"]] == ["malformed_item"] * len(hostile)
    notes = {row["id"]: row["note"] for row in result["manifest"]["items"]}
    assert notes["supplied[11]"].startswith("supplied[11].eligibility.freshUntil: expected UTC")
    assert notes["supplied[12]"] == "supplied[12].id: given twice"
    assert CANARY not in json.dumps(result)
    assert "served text" in json.dumps(result["prompt"])


def test_what_may_not_be_served_comes_back_nowhere(client: RawClient) -> None:
    """Refused originals and replaced ones are in no prompt, block, row or problem; each has its row."""
    redacted = {"content": {"kind": "text", "text": "a clean summary"}}
    result = ask(
        client,
        [
            item("denied", f"{CANARY} denied", required=True, eligibility=eligibility(sourceAuthorization="denied")),
            item(
                "redacted",
                f"{CANARY} redacted",
                eligibility=eligibility(promptInjectionTreatment="redact", redacted=redacted),
            ),
            item("data", content=binary(CANARY.encode())),
        ],
    )
    assert rows(result) == {
        "supplied:denied": ("excluded", "not authorized by its source"),
        "supplied:redacted": ("redacted",),
        "supplied:data": ("included",),
    }
    assert CANARY not in json.dumps(result)
    assert "a clean summary" in json.dumps(result["prompt"])
    verdict = next(row["verdict"] for row in result["manifest"]["items"] if row["id"] == "supplied:redacted")
    assert verdict["entry"] != verdict["selected"] != ""
    assert verdict["eligibility"]["evidence"] == ["ev-1"]
    assert result["manifest"]["selection"]["entries"] == 2


def test_classified_text_stays_on_this_machine(client: RawClient) -> None:
    """With no privacy setting at all: a remote model does not get it, a local one does."""
    items = [item("secret", f"{CANARY} classified", eligibility=eligibility(classification="restricted"))]
    scope = {**SCOPE, "maxClassification": "restricted"}
    remote = ask(client, items, eligibility=scope)
    assert rows(remote) == {"supplied:secret": ("excluded", "restricted for remote models")}
    assert CANARY not in json.dumps(remote)
    assert CANARY in json.dumps(ask(client, items, eligibility=scope, model=LOCAL)["prompt"])


def test_a_required_item_without_room_is_refused_by_name(client: RawClient) -> None:
    """An error with a code, not a prompt without it."""
    scope = {**SCOPE, "budget": {"maxEntries": 1, "maxBytes": 4}}
    params = {"text": "hello", "supplied": [item("must", CANARY, required=True)], "eligibility": scope}
    error = client.request("room", "haversack/context", params)["error"]
    assert error["data"]["code"] == "supplied_over_budget"
    assert "'must'" in error["message"]
    assert CANARY not in json.dumps(error)
