"""The choice of a model over the real server: the worked example from a policy file, and every field that steers it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import RawClient, serving

pytestmark = pytest.mark.e2e

CLAUDE, THINKER, MINI = "anthropic/claude-sonnet", "openai/gpt-5.5-thinking", "openai/gpt-5.5-mini"
LOCAL = "ollama/qwen2.5-coder:7b"
POLICY = {
    "version": 1,
    "default": {"model": MINI, "fallbacks": [LOCAL]},
    "rules": [
        {
            "name": "auth edits use Claude",
            "priority": 30,
            "effort": "high",
            "intent": "edit",
            "paths": ["src/auth/**"],
            "model": CLAUDE,
            "fallbacks": [THINKER],
            "costLimit": "0.000001",
        }
    ],
    "privacy": {"remote": {"mode": "ask"}},
}
EDIT = {"text": "fix the login", "intent": "edit", "mentions": [{"value": "src/auth/login.py"}]}
CANARY = "sk-proj-canary0123456789"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[RawClient]:
    folder = home / "shop"
    for path, text in {
        "src/auth/login.py": "def login(user):\n    return user\n",
        ".haversack/policy.json": json.dumps(POLICY),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    with serving(home) as raw:
        raw.initialize(folder)
        raw.wait_ready()
        yield raw
        assert raw.shutdown() == 0
        assert CANARY.encode() not in raw.errors


def route(client: RawClient, **fields: Any) -> dict[str, Any]:
    """The route as the wire has it, with the provider in front of the model's name; preview and answer agree on it."""
    params = {**EDIT, **fields}
    found = client.result("ask", "haversack/context", params)["route"]
    assert client.result("preview", "haversack/preview", params)["route"] == found
    return {**found, "model": f"{found['provider']}/{found['model']}"}


def test_the_worked_example_from_a_policy_file(client: RawClient) -> None:
    """Rule, fallback for want of a key, default route; what to ask the user first."""
    found = route(client, providers=["anthropic", "openai"])
    assert (found["model"], found["effort"], found["taskType"]) == (CLAUDE, "high", "edit")
    assert found["matchedRule"] == (
        "rule auth edits use Claude: the task is edit and src/auth/login.py is in src/auth/**"
    )
    assert (found["skipped"], found["fallbackUsed"], found["overrideUsed"], found["degraded"]) == ([], False, False, [])
    assert found["approvals"] == ["cost_limit", "remote_disclosure"]
    found = route(client, providers=["openai"])
    assert (found["model"], found["fallbackUsed"]) == (THINKER, True)
    assert [(each["model"], each["code"]) for each in found["skipped"]] == [(CLAUDE, "missing_credentials")]
    found = route(client, intent="chat", text="hello", mentions=[])
    assert (found["model"], found["matchedRule"]) == (MINI, "the policy's default route")


def test_every_field_of_the_request_steers_the_route(client: RawClient) -> None:
    """Effort, needs, what failed, local models only, an override, and the request's own policy."""
    default = {"intent": "chat", "text": "hello", "mentions": []}
    assert route(client, **default, effort="low")["effort"] == "low"
    failed = route(client, **default, failed=[{"model": MINI, "reason": "rate_limited"}])
    assert (failed["model"], failed["skipped"][0]["code"]) == (LOCAL, "rate_limited")
    only = route(client, **default, localOnly=True)
    assert (only["model"], only["skipped"][0]["code"], only["approvals"]) == (LOCAL, "local_only", [])
    needs = client.request("x", "haversack/context", {**EDIT, **default, "model": LOCAL, "needs": ["images"]})
    assert needs["error"]["data"]["code"] == "missing_capability"
    mine = {
        "version": 1,
        "rules": [{"name": "mine", "priority": 1, "model": LOCAL, "requiresCapabilities": ["tools"]}],
        "allowDegraded": True,
    }
    degraded = route(client, policy=mine, effort="high")
    assert (degraded["model"], degraded["degraded"]) == (LOCAL, ["reasoning"])
    assert degraded["cost"] == {"low": "0", "high": "0", "limit": ""}


def test_a_restricted_path_is_refused_for_remote_models_with_every_skip(client: RawClient) -> None:
    """By the rule and by an override, each with its own code."""
    tight = {"version": 1, "privacy": {"restrictedPaths": ["src/auth/"]}}
    error = client.request("x", "haversack/context", {**EDIT, "policy": tight})["error"]
    assert error["data"]["code"] == "local_model_required"
    assert [(each["model"], each["code"]) for each in error["data"]["details"]["skipped"]] == [
        (CLAUDE, "local_only"), (THINKER, "local_only"),
    ]  # fmt: skip
    error = client.request("x", "haversack/context", {**EDIT, "policy": tight, "model": MINI})["error"]
    assert error["data"]["code"] == "override_not_allowed"


def test_a_key_is_never_taken(client: RawClient, home: Path) -> None:
    """In place of a provider's name it is refused, and it is in no answer, log line or file."""
    answer = client.request("x", "haversack/context", {**EDIT, "providers": [CANARY]})
    assert answer["error"]["code"] == -32602
    assert CANARY not in json.dumps(client.answers) + json.dumps(client.sent)
    for params in ({"failed": [{"model": MINI, "reason": "bored"}]}, {"effort": "huge"}, {"needs": ["wings"]}):
        assert client.request("x", "haversack/context", {**EDIT, **params})["error"]["code"] == -32602
    assert not any(CANARY.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())
