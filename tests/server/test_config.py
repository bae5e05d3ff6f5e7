"""Settings: what users write becomes valid values, and whatever is wrong is said, never raised."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from gathering import World, run
from hypothesis import given
from hypothesis import strategies as st

from haversack import outbound, pipeline
from haversack.config import SETTINGS, Layer, Scope, merge, parse
from haversack.local_index import embedder_spec
from haversack.types import Bundle, Request, Settings


@pytest.mark.parametrize(
    ("value", "window"),
    [
        ("4k", 4_000),
        ("8k", 8_000),
        ("16k", 16_000),
        ("32K", 32_000),
        (" 128 k ", 128_000),
        ("1m", 1_000_000),
        ("24000", 24_000),
        ("24_000", 24_000),
        (24_000, 24_000),
        (24_000.0, 24_000),
        ("auto", 0),
        ("", 0),
    ],
)
def test_window_values(value: object, window: int) -> None:
    """Sizes with k, plain numbers and numeric strings are windows; k is 1,000."""
    settings, problems = parse({"contextWindow": value})
    assert (settings.context_window, problems) == (window, ())


@pytest.mark.parametrize("value", ["lots", "16kk", "-4k", 16, "16", True, [], {"a": 1}, -1, float("nan"), 10**12, "٣k"])
def test_junk_windows_are_reported(value: object) -> None:
    """Junk leaves the default, and the problem names the key, the value and what is allowed."""
    settings, problems = parse({"contextWindow": value})
    assert settings == Settings()
    assert len(problems) == 1
    assert "contextWindow" in problems[0].message
    if not isinstance(value, dict):
        assert json.dumps(value, ensure_ascii=False)[:40] in problems[0].message
        assert "128k" in problems[0].remedy


@pytest.mark.parametrize(
    "raw",
    [
        {"haversack": {"hybridSearch": {"topK": 20}, "gather": {"deadlineMs": 900}}},
        {"hybridSearch": {"topK": 20}, "gather": {"deadlineMs": 900}},
        {"haversack.hybridSearch.topK": 20, "haversack.gather.deadlineMs": 900},
        {"hybridSearch.topK": "20", "gather": {"deadlineMs": 900.0}},
    ],
)
def test_nested_and_dotted_keys_mean_the_same(raw: dict[str, Any]) -> None:
    """Editors send objects or dotted names, with or without the leading name."""
    settings, problems = parse(raw)
    assert (settings.top_k, settings.source_deadline_ms, problems) == (20, 900, ())


# A good value that differs from the default, for every setting; with what else must be set for it to count.
GOOD: dict[str, tuple[object, object, dict[str, object]]] = {
    "contextWindow": ("32k", 32_000, {}),
    "includeHidden": (True, True, {}),
    "select.sectionSummaryMaxTokens": (40, 40, {}),
    "select.maxSections": (3, 3, {}),
    "includeSecretNames": (True, True, {}),
    "maxFileSize": ("0.5", 500_000, {}),
    "hybridSearch.vectorWeight": (0.25, 0.25, {}),
    "hybridSearch.textWeight": ("0.25", 0.25, {}),
    "hybridSearch.topK": (50, 50, {}),
    "hybridSearch.maxFiles": (3, 3, {}),
    "gather.deadlineMs": (200, 200, {}),
    "records.keepDays": (0, 0, {}),
    "embedding.provider": ("minilm", "minilm", {}),
    "embedding.endpoint": ("http://localhost:11434", "http://localhost:11434", {}),
    "embedding.model": ("nomic-embed-text", "nomic-embed-text", {}),
    "searchTerms.endpoint": ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", {}),
    "searchTerms.model": ("tiny", "tiny", {}),
    "embedding.keyVariable": (" EMBED_KEY ", "EMBED_KEY", {}),
    "searchTerms.keyVariable": ("TERMS_KEY", "TERMS_KEY", {}),
    "history.warningShare": (0.5, 0.5, {}),
    "history.compactShare": ("0.75", 0.75, {}),
    "history.keepRecent": (6, 6, {}),
    "history.largeToolResult": (1_000, 1_000, {}),
    "summarizer.provider": ("ollama", "ollama", {}),
    "summarizer.endpoint": ("http://127.0.0.1:11434", "http://127.0.0.1:11434", {}),
    "summarizer.model": ("tiny", "tiny", {}),
    "summarizer.keyVariable": ("SUMMARY_KEY", "SUMMARY_KEY", {}),
    "summarizer.timeoutMs": (500, 500, {}),
    "summarizer.ahead": (True, True, {}),
    "systemPrompt": ("Answer in verse.", "Answer in verse.", {}),
    "teamContext": (False, False, {}),
    "rules.enabled": (False, False, {}),
    "rules.maxTokens": (500, 500, {}),
    "fim.prefixTokens": (3000, 3000, {}),
    "fim.suffixTokens": (700, 700, {}),
    "fim.contextTokens": (0, 0, {}),
    "fim.replyTokens": (64, 64, {}),
    "fim.definitions": (False, False, {}),
    "fim.similar": (False, False, {}),
    "fim.recent": (False, False, {}),
    "fim.families": ({"seer": "qwen"}, {"seer": "qwen"}, {}),
    "model": ("openai/gpt-4o", "openai/gpt-4o", {}),
    "models.windows": ({"llama3.1:8b": "8k"}, {"llama3.1:8b": 8_000}, {}),
    "privacy.restrictedPaths": (["secrets/"], ("secrets/",), {}),
    "privacy.remote.blockedPaths": (["*.pem", "*.pem"], ("*.pem",), {}),
    "privacy.redactSecrets": (False, False, {}),
}
# Values of the wrong type or out of range, for every setting.
BAD: tuple[object, ...] = (object(), b"bytes", 3j, {"deep": {"er": 1}}, [1, None], -5, "\x00" * 200_000)


def test_every_setting_has_a_good_value_here() -> None:
    """A setting added to the table has to be added to the tests."""
    assert set(GOOD) == {setting.name for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_reaches_its_field(setting: Any) -> None:
    """A good value lands in the field of the row, and differs from the default."""
    raw, wanted, others = GOOD[setting.name]
    settings, problems = parse({setting.name: raw, **others})
    assert problems == ()
    assert getattr(settings, setting.field) == wanted
    assert getattr(Settings(), setting.field) != wanted


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_wrong_values_are_reported_and_change_nothing(setting: Any, bad: object) -> None:
    """No wrong type or size raises or gets through, and each is reported in a message that fits a message box."""
    settings, problems = parse({setting.name: bad})
    assert settings == Settings()
    assert problems
    assert all(len(problem.message) < 300 for problem in problems)


@pytest.mark.parametrize("name", ["hybridSearch.topK", "hybridSearch.vectorWeight", "maxFileSize"])
def test_booleans_are_no_numbers(name: str) -> None:
    """True is not 1."""
    settings, problems = parse({name: True})
    assert (settings, len(problems)) == (Settings(), 1)


def test_every_field_of_settings_has_a_row() -> None:
    """No field can be set by nothing, and no row sets a field that is not there."""
    assert [setting.field for setting in SETTINGS] != []
    assert {setting.field for setting in SETTINGS} == {field.name for field in fields(Settings)}


def test_unknown_keys_are_reported_with_a_guess() -> None:
    """A misspelt or misplaced key is not silently ignored."""
    _, problems = parse({"topK": 5, "hybridSearch": {"mmr": {"enabled": True}}})
    assert [problem.code for problem in problems] == ["unknown_setting", "unknown_setting"]
    assert "haversack.hybridSearch.topK" in problems[0].remedy


def test_null_means_not_set() -> None:
    """Editors send null for what the user has not set."""
    assert parse({"hybridSearch": {"topK": None, "vectorWeight": None}, "privacy": {}}) == (Settings(), ())


def test_one_weight_fixes_the_other() -> None:
    """The weights share what there is; two zeros rank nothing and are refused."""
    assert parse({"hybridSearch.vectorWeight": 0.25})[0].text_weight == 0.75
    assert parse({"hybridSearch.textWeight": 1})[0].vector_weight == 0
    settings, problems = parse({"hybridSearch": {"vectorWeight": 0, "textWeight": 0}})
    assert (settings.vector_weight, settings.text_weight) == (None, None)
    assert len(problems) == 1


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "localhost:8080",
        "http://user:pw@host/v1",
        "http://",
        "http://host:99999999/",
    ],
)
def test_only_web_addresses_are_endpoints(address: str) -> None:
    """Other schemes, credentials in the address and broken ports are refused, for both endpoints."""
    assert parse({"searchTerms.endpoint": address})[0].terms_endpoint == ""
    raw = {"embedding": {"provider": "ollama", "endpoint": address, "model": "m"}}
    settings, problems = parse(raw)
    assert settings.embedder == "static"
    assert problems


@pytest.mark.parametrize(
    "raw", [{"provider": "ollama", "endpoint": "http://localhost:11434"}, {"provider": "model2vec"}]
)
def test_half_an_embedder_is_none(raw: dict[str, str]) -> None:
    """A server without a model, or a folder without a path, falls back to the built-in table and says why."""
    settings, problems = parse({"embedding": raw})
    assert settings.embedder == "static"
    assert "needs" in problems[0].message


def test_later_layers_win() -> None:
    """A request beats the workspace, which beats the user; what a layer does not set stays."""
    settings, problems = merge(
        (
            Layer(Scope.USER, {"contextWindow": "8k", "hybridSearch.topK": 7, "teamContext": False}),
            Layer(Scope.WORKSPACE, {"contextWindow": "32k", "hybridSearch.topK": 9}),
            Layer(Scope.REQUEST, {"hybridSearch.topK": 11}),
        )
    )
    assert problems == ()
    assert (settings.context_window, settings.top_k, settings.team_context) == (32_000, 11, False)


def test_a_bad_value_leaves_the_earlier_layer_in_force() -> None:
    """Junk in the workspace does not throw away what the user set."""
    settings, problems = merge(
        (Layer(Scope.USER, {"contextWindow": "8k"}), Layer(Scope.WORKSPACE, {"contextWindow": "x"}))
    )
    assert settings.context_window == 8_000
    assert len(problems) == 1


def test_privacy_lists_only_grow() -> None:
    """No layer can take a path off the list of an earlier one."""
    settings, _ = merge(
        (
            Layer(Scope.USER, {"privacy.restrictedPaths": ["a", "b"]}),
            Layer(Scope.WORKSPACE, {"privacy.restrictedPaths": []}),
            Layer(Scope.REQUEST, {"privacy.restrictedPaths": ["b", "c"]}),
        ),
        trusted=False,
    )
    assert settings.restricted_paths == ("a", "b", "c")


GUARDED = [setting.name for setting in SETTINGS if setting.guarded]


@pytest.mark.parametrize("name", GUARDED)
def test_an_untrusted_workspace_cannot_send_text_out(name: str) -> None:
    """Endpoints, providers, the model and the system prompt are not taken from a workspace nobody vouched for."""
    raw, wanted, _ = GOOD[name]
    field, scopes = next((setting.field, setting.scopes) for setting in SETTINGS if setting.name == name)
    settings, problems = merge((Layer(Scope.WORKSPACE, {name: raw}),), trusted=False)
    assert settings == Settings()
    assert [problem.code for problem in problems] == ["setting_refused"]
    taken = getattr(merge((Layer(Scope.WORKSPACE, {name: raw}),), trusted=True)[0], field)
    assert taken == (wanted if Scope.WORKSPACE in scopes else getattr(Settings(), field))


def test_everything_with_an_endpoint_is_guarded() -> None:
    """A new endpoint setting cannot forget the guard."""
    about_services = [s for s in SETTINGS if "endpoint" in s.name or s.name.startswith(("embedding.", "searchTerms."))]
    assert all(setting.guarded or setting.scopes == (Scope.USER,) for setting in about_services)
    summaries = {s.name for s in SETTINGS if s.name.startswith("summarizer.") and s.guarded}
    assert summaries == {f"summarizer.{name}" for name in ("provider", "endpoint", "model", "ahead")}


@pytest.mark.parametrize("name", ["embedding.keyVariable", "searchTerms.keyVariable", "summarizer.keyVariable"])
def test_keys_are_named_by_the_user_alone_and_never_shown(name: str) -> None:
    """A workspace cannot choose which variable is sent out; a key in the place of a name is not repeated."""
    for trusted in (True, False):
        settings, problems = merge((Layer(Scope.WORKSPACE, {name: "AWS_SECRET_ACCESS_KEY"}),), trusted=trusted)
        assert (settings, [problem.code for problem in problems]) == (Settings(), ["setting_refused"])
    settings, problems = parse({name: "sk-proj-hunter2"})
    assert (settings, [problem.code for problem in problems]) == (Settings(), ["invalid_setting"])
    assert "hunter2" not in repr(problems)


def test_a_request_cannot_change_the_index() -> None:
    """What shapes the index is refused in a request."""
    settings, problems = merge((Layer(Scope.REQUEST, {"includeHidden": True}),))
    assert (settings.include_hidden, len(problems)) == (False, 1)


def test_only_the_user_opens_secret_names() -> None:
    """A workspace that came with its own settings cannot have `.env` read."""
    settings, problems = merge((Layer(Scope.WORKSPACE, {"includeSecretNames": True}),))
    assert (settings.include_secret_names, len(problems)) == (False, 1)


def test_endless_nesting_is_junk() -> None:
    """Nesting deeper than any setting is reported and does not exhaust the stack."""
    raw: dict[str, Any] = {}
    for _ in range(100_000):
        raw = {"haversack": raw or 1}
    assert len(parse(raw)[1]) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([s.name for s in SETTINGS] + ["haversack", "privacy", "x"]), JSON, max_size=6))
def test_no_json_raises(raw: dict[str, Any]) -> None:
    """Whatever an editor sends, there are settings afterwards."""
    settings, problems = parse(raw)
    assert isinstance(settings, Settings)
    assert all(problem.message for problem in problems)


# --- a workspace that nobody trusts ------------------------------------------------------------------------------

KEY = "AKIA" + "Q3EGRN7TWY2LKZ5M"
FILES = {
    "data/vault.py": "def open_vault():\n    return 'canary'\n",
    "src/use.py": f"ACCESS = '{KEY}'\n\n\ndef use_vault():\n    return open_vault(ACCESS)\n",
    ".env": "PASSWORD=canary\n",
}
USER = Layer(Scope.USER, {"privacy.restrictedPaths": ["data/"], "model": "openai/gpt-4o"})
NAMES = [setting.name for setting in SETTINGS]


@pytest.mark.parametrize("names", [*([name] for name in NAMES), NAMES], ids=[*NAMES, "all of them"])
def test_no_setting_of_an_untrusted_workspace_sends_text_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """One by one and together, with the values that the tests of settings use: so a new setting is covered."""
    sent: list[object] = []
    monkeypatch.setattr(outbound, "post_json", lambda *given, **named: sent.append(given))
    layer = Layer(Scope.WORKSPACE, {name: GOOD[name][0] for name in names})
    settings, _ = merge((USER, layer), trusted=False)
    embedder_spec(settings).load()
    bundle, plain = _ask(tmp_path, settings), _ask(tmp_path, merge((USER,))[0])
    assert sent == []
    assert bundle.route.model.name == plain.route.model.name
    assert bundle.prompt.messages[0] == plain.prompt.messages[0]
    assert not any(word in repr(bundle) for word in ("canary", KEY))
    assert KEY not in repr(plain)


def _ask(folder: Path, settings: Settings) -> Bundle:
    world = World(folder, {"ws": dict(FILES)}, settings, trusted=False)
    return run(pipeline.run(Request("how do use_vault() and open_vault() work?"), world.workspace()))
