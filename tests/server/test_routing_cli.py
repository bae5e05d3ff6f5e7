"""The flags that steer the choice of a model, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from haversack.__main__ import main
from haversack.cli import arguments

CLOUD, LOCAL = "openai/gpt-4o", "ollama/qwen2.5-coder:7b"
KEY = "sk-proj-canary0123456789"
POLICY: dict[str, Any] = {
    "version": 1,
    "default": {"model": CLOUD, "fallbacks": [LOCAL]},
    "rules": [{"name": "plans", "intent": "plan", "model": "openai/o3", "fallbacks": [CLOUD]}],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("shop")
    (root / "cart.py").write_text("def add_item(cart, item):\n    cart.append(item)\n")
    (root.parent / "policy.json").write_text(json.dumps(POLICY))
    return root, tmp_path_factory.mktemp("cache")


def typed(capsys: pytest.CaptureFixture[str], place: tuple[Path, Path], *words: str) -> tuple[int, str, str]:
    where = ["--workspace", str(place[0]), "--cache-dir", str(place[1])]
    code = main(["context", "hi", *words, "--policy", str(place[0].parent / "policy.json"), *where])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("words", "model", "skipped"),
    [
        ([], CLOUD, []),
        (["--intent", "plan"], "openai/o3", []),
        (["--intent", "plan", "--provider", "anthropic"], "", ["missing_credentials", "missing_credentials"]),
        (["--provider", "OpenAI"], CLOUD, []),
        (["--provider", "anthropic"], LOCAL, ["missing_credentials"]),
        (["--local-only"], LOCAL, ["local_only"]),
        (["--need", "memory"], "", ["missing_capability", "missing_capability"]),
        (["--effort", "high"], "", ["missing_capability", "missing_capability"]),
        (["--effort", "high", "--intent", "plan"], "openai/o3", []),
    ],
)
def test_each_flag_steers_the_route(
    capsys: pytest.CaptureFixture[str], place: tuple[Path, Path], words: list[str], model: str, skipped: list[str]
) -> None:
    """As its field of the request does; a refusal says of each model why it lost."""
    code, out, _ = typed(capsys, place, *words, "--json")
    told = json.loads(out)
    if model:
        assert code == arguments.OK
        assert f"{told['route']['provider']}/{told['route']['model']}" == model
        assert [each["code"] for each in told["route"]["skipped"]] == skipped
    else:
        assert code != arguments.OK
        assert told["error"]["code"] == "fallback_exhausted"
        assert [each["code"] for each in told["error"]["details"]["skipped"]] == skipped


def test_the_table_says_who_chose_and_why_others_lost(
    capsys: pytest.CaptureFixture[str], place: tuple[Path, Path]
) -> None:
    """A person reads the model, the rule and each skipped one with its reason."""
    _, out, _ = typed(capsys, place, "--provider", "anthropic")
    for words in (LOCAL, "the policy's default route", "skipped", "It needs a key of openai", "missing_credentials"):
        assert words in out


def test_a_key_typed_as_a_provider_is_refused_and_not_repeated(
    capsys: pytest.CaptureFixture[str], place: tuple[Path, Path]
) -> None:
    """On neither stream."""
    with pytest.raises(SystemExit) as caught:
        typed(capsys, place, "--provider", KEY)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert "looks like a key" in captured.err
    assert KEY not in captured.out + captured.err
