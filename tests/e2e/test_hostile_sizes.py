"""Large requests against a real process: other answers go on meanwhile, and replies stay in proportion."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.raw_client import FAKE_SERVER, RawClient, serving

pytestmark = pytest.mark.e2e

CONTEXT = "haversack/context"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    home = tmp_path_factory.mktemp("home")
    with serving(home, FAKE_SERVER) as raw:
        raw.initialize(home)
        yield raw
        assert raw.shutdown() == 0


def _range(line: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}}


@pytest.mark.parametrize(
    "params",
    [
        {"mentions": [{"value": f"m{number}.py"} for number in range(1_000)]},
        {"history": [{"role": "user", "content": f"message {number}"} for number in range(20_000)]},
        {"activeDocument": {"uri": "untitled:1", "visibleRanges": [_range(line) for line in range(10_000)]}},
        {"activeDocument": {"uri": "untitled:" + "a%2F" * 100_000, "visibleRanges": [_range(0)] * 500}},
    ],
    ids=["mentions", "history", "ranges", "ranges of a long address"],
)
def test_reading_a_long_request_takes_a_moment(client: RawClient, params: dict[str, Any]) -> None:
    """Reading tens of thousands of items holds up the next message for less than a second."""
    started = time.monotonic()
    client.send({"jsonrpc": "2.0", "id": "long", "method": CONTEXT, "params": {"text": "hello", **params}})
    client.send({"jsonrpc": "2.0", "id": "next", "method": "haversack/index/status", "params": {}})
    answers = client.expect_all({"long", "next"})
    assert time.monotonic() - started < 1.0
    assert all("result" in answer for answer in answers.values())


def test_unknown_fields_are_named_up_to_a_limit(client: RawClient) -> None:
    """A reply names the first unknown fields, not all of a hundred thousand, and none at its full length."""
    params = {"text": "hello", "x" * 100_000: 1, **{f"field{number}": 1 for number in range(100_000)}}
    answer = client.request("unknown", CONTEXT, params)
    assert len(answer["result"]["problems"]) == 20
    assert len(json.dumps(answer)) < 20_000
