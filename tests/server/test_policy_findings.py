"""What is found in policies: all of it in one pass, each with a code, a place, a range and a remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack.__main__ import main
from haversack.policy.document import Document, Kind, parse_text, parse_value
from haversack.policy.findings import CODES, MAX_PROBLEMS, Finding, Severity, looks_secret
from haversack.policy.layers import merge
from haversack.policy.overlap import may_overlap
from haversack.policy.privacy import Privacy
from haversack.policy.values import MAX_FALLBACKS
from haversack.types import Policy, Settings
from haversack_index.text import split_lines

LOCAL, REMOTE = "ollama/qwen2.5-coder:7b", "openai/gpt-4o"
SECRET = "sk-proj-Zx81kQmN04vbTTgh29LpXw77"


def document(value: Mapping[str, object], kind: Kind = Kind.USER, layer: str = "user's policy") -> Document:
    return parse_text(json.dumps({"version": 1, "default": {"model": LOCAL}, **value}), kind, layer)


def findings(value: Mapping[str, object], settings: Settings | None = None) -> list[tuple[str, str]]:
    """Code and place of each finding."""
    merged = merge([document(value)], settings or Settings())
    return sorted((finding.code, finding.place) for finding in merged.findings)


def rule(name: str = "r", **more: object) -> dict[str, object]:
    return {"name": name, "model": LOCAL, **more}


def rules(*each: dict[str, object]) -> dict[str, object]:
    return {"rules": list(each)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, []),
        (rules(rule(model="opnai/gpt-4o")), [("unknown_provider", "rules[0].model")]),
        (rules(rule(model="openai/nonesuch")), [("unknown_model", "rules[0].model")]),
        (rules(rule(fallbacks=["acme/x"])), [("unknown_provider", "rules[0].fallbacks[0]")]),
        ({"default": {"model": "acme/x"}}, [("unknown_provider", "default.model")]),
        ({"default": {"model": "acme/x"}, "models": [{"name": "Acme/X", "window": 8_000}]}, []),
        ({"default": {"model": "gpt-4o"}}, [("bad_model_name", "default.model"), ("no_default_route", "default")]),
        (rules(rule(paths=["["])), [("invalid_glob", "rules[0].paths[0]")]),
        (rules(rule(paths=["ok/", "!x"])), [("invalid_glob", "rules[0].paths[1]")]),
        ({"privacy": {"restrictedPaths": ["["]}}, [("invalid_privacy_glob", "privacy.restrictedPaths[0]")]),
        ({"privacy": {"restrictedPaths": ["!x"]}}, [("privacy_exception", "privacy.restrictedPaths[0]")]),
        (rules(rule(), rule(priority=2)), [("duplicate_rule", "rules[1].name")]),
        (rules(rule(fallbacks=[LOCAL.upper()])), [("self_fallback", "rules[0].fallbacks[0]")]),
        (rules(rule(fallbacks=[REMOTE, REMOTE])), [("duplicate_fallback", "rules[0].fallbacks[1]")]),
        ({"default": None}, [("no_default_route", "default"), ("wrong_type", "default")]),
        (rules(rule(localOnly=True, model=REMOTE)), [("remote_in_local_rule", "rules[0].model")]),
        (rules(rule(localOnly=True, fallbacks=[REMOTE])), [("remote_in_local_rule", "rules[0].fallbacks[0]")]),
        (rules(rule(costLimit="-1")), [("bad_amount", "rules[0].costLimit")]),
        (rules(rule(costLimit=0.25)), []),
        ({"models": [{"name": "a/b", "inputPrice": "free"}]}, [("bad_amount", "models[0].inputPrice")]),
        ({"models": [{"name": "a/b"}, {"name": "A/b"}]}, [("duplicate_model", "models[1].name")]),
        ({"privacy": {"remote": {"mode": "deny"}}, **rules(rule(model=REMOTE))}, [("remote_denied", "rules[0].model")]),
        ({"localOnly": True, "default": {"model": REMOTE}}, [("remote_denied", "default.model")]),
        ({"version": 3}, [("unknown_version", "version")]),
        (rules(rule(prority=1)), [("unknown_key", "rules[0].prority")]),
        (rules({"model": LOCAL}), [("missing_key", "rules[0].name")]),
        (rules(rule(priority=-1)), [("wrong_value", "rules[0].priority")]),
    ],
)
def test_each_finding_has_its_code_and_place(value: dict[str, object], expected: list[tuple[str, str]]) -> None:
    assert findings(value) == expected


def test_everything_is_found_in_one_pass() -> None:
    """One look tells all of it; mending one thing does not bring up the next."""
    value = {
        "version": 1,
        "rules": [
            rule("a", model="acme/x", intent="edti"),
            rule("a", priority=2),
            rule("c", costLimit="$", localOnly=True, model=REMOTE, fallbacks=[REMOTE]),
        ],
        "privacy": {"restrictedPaths": ["["]},
        "allowDegraded": "yes",
        "extra": 1,
    }
    merged = merge([parse_text(json.dumps(value), Kind.USER, "u")], Settings())
    assert {finding.code for finding in merged.findings} == {
        "unknown_provider",
        "duplicate_rule",
        "self_fallback",
        "remote_in_local_rule",
        "no_default_route",
        "wrong_value",
        "bad_amount",
        "invalid_privacy_glob",
        "wrong_type",
        "unknown_key",
    }
    assert all(finding.message and finding.remedy and finding.layer == "u" for finding in merged.findings)


def test_a_near_key_or_value_is_suggested() -> None:
    merged = merge(
        [document(rules(rule("a", prority=1), rule("b", intent="reviev")) | {"allowdegraded": True})], Settings()
    )
    remedies = " ".join(finding.remedy for finding in merged.findings)
    assert all(f'Did you mean "{meant}"?' in remedies for meant in ("priority", "review", "allowDegraded"))


def test_an_unknown_model_can_be_declared_as_told() -> None:
    """The remedy is an entry that, put under `models`, ends the finding; so does a window of the settings."""
    value = {"default": {"model": "openai/nonesuch"}}
    remedy = merge([document(value)], Settings()).findings[0].remedy
    entry = re.search(r"\{.*\}", remedy)
    assert entry is not None
    assert findings({**value, "models": [json.loads(entry[0])]}) == []
    assert findings(value, Settings(custom_windows={"openai/nonesuch": 8_000})) == []


# --- positions ------------------------------------------------------------------------------------------------------


def marked(text: str, finding: Finding) -> str:
    """The text under a finding."""
    start, end = finding.range.start, finding.range.end
    assert start.line == end.line
    return split_lines(text)[start.line][start.character : end.character]


def test_ranges_hold_what_is_wrong() -> None:
    """Across line ends of every kind and characters beyond the first plane, counted in code points."""
    text = (
        '{"version": 1,\r\n "default": {"model": "ollama/qwen2.5-coder:7b"},\r\n'
        ' "rules": [{"name": "🦊é", "model": "openai/🦊", "intent": "edti",\n  "fallbacks": ["x"]}],\r "localOnly": 7,'
        ' "extra🦊": 1, "privacy": {"remote": []}}'
    )
    merged = merge([parse_text(text, Kind.USER, "u")], Settings())
    found = {finding.place: marked(text, finding) for finding in merged.findings}
    assert found == {
        "rules[0].model": '"openai/🦊"',
        "rules[0].intent": '"edti"',
        "rules[0].fallbacks[0]": '"x"',
        "localOnly": "7",
        "extra🦊": '"extra🦊"',
        "privacy.remote": "[",
    }


def test_a_missing_key_points_at_the_start_of_its_object() -> None:
    text = '{"version": 1,\n "default": {}}'
    merged = merge([parse_text(text, Kind.USER, "u")], Settings())
    places = {finding.place: finding.range.start for finding in merged.findings}
    assert (places["default.model"].line, places["default.model"].character) == (1, 12)


def test_a_syntax_error_points_at_its_character() -> None:
    text = '{"version": 1,\n "rules": [],}'
    (finding,) = parse_text(text, Kind.USER, "u").findings
    assert marked(text, finding) == ","
    assert "comma" in finding.message


# --- secrets --------------------------------------------------------------------------------------------------------

SECRETS = (
    SECRET,
    "sk-ant-api03-abcdefghijklmnopqrstuv",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdefABCDEF",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "Bearer abcdef1234567890",
    "https://me:hunter2pass@example.com",
    "-----BEGIN RSA PRIVATE KEY-----",
    "d41d8cd98f00b204e9800998ecf8427e",
    "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg",
)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("where", ["model", "name", "path", "key", "tenant", "glob", "version", "effort", "amount"])
def test_a_secret_is_found_anywhere_and_never_repeated(secret: str, where: str) -> None:
    """Nothing that is said about the policy holds it: not a message, a remedy, a place or a problem."""
    value: dict[str, Any] = {
        "model": rules(rule(model=f"acme/{secret}")),
        "name": rules(rule(secret), rule(secret)),
        "path": rules(rule(paths=[secret, f"[{secret}"])),
        "key": {secret: 1},
        "tenant": {"documents": {"tenants": {secret: ["["]}}},
        "glob": {"privacy": {"restrictedPaths": [f"[{secret}", f"!{secret}"]}},
        "version": {"version": secret},
        "effort": rules(rule(effort=secret)),
        "amount": rules(rule(costLimit=secret)),
    }[where]
    merged = merge([document(value), parse_value({"version": 1, **value}, Kind.REQUEST, "r")], Settings())
    assert "inline_secret" in {finding.code for finding in merged.findings}
    assert secret not in repr(merged.findings)
    problems = (*merged.policy.problems, *Privacy.compile(Settings(), (), merged.policy).problems)
    assert secret not in repr(problems)


@pytest.mark.parametrize(
    "text",
    [
        "anthropic/claude-3-5-sonnet-20241022",
        "meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo",
        "ollama/qwen2.5-coder:7b-instruct-q4_K_M",
        "src/**/generated_protocol_buffers_v2/*.py",
        "bedrock/us.anthropic.claude-3-7-sonnet-20250219-v1:0",
        "packages/internationalization/README.md",
        "https://example.com/policy.schema.json",
        "Rule for everything below the risk-assessment folder",
    ],
)
def test_names_of_models_and_files_are_no_secrets(text: str) -> None:
    assert not looks_secret(text)


# --- rules that compete ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "is_ambiguous"),
    [
        ({}, {}, True),
        ({"intent": "edit"}, {"intent": "edit"}, True),
        ({"intent": "edit"}, {"intent": "review"}, False),
        ({"intent": "edit"}, {}, False),  # more specific
        ({"priority": 1}, {"priority": 2}, False),
        ({"paths": ["src/auth/**"]}, {"paths": ["docs/**"]}, False),
        ({"paths": ["src/auth/**"]}, {"paths": ["src/**/*.py"]}, True),
        ({"paths": ["docs/**", "src/auth/**"]}, {"paths": ["src/"]}, True),
        ({"paths": ["*.py"]}, {"paths": ["*.md"]}, True),  # a folder called `x.md` may hold `y.py`
        ({"paths": ["src/*.py"]}, {"paths": ["src/*.md"]}, False),
        ({"paths": ["src/"], "intent": "edit"}, {"paths": ["src/"], "intent": "plan"}, False),
        ({"paths": ["src/"]}, {"intent": "plan"}, False),
        ({"paths": ["["]}, {"paths": ["["]}, False),
    ],
)
def test_only_rules_that_may_meet_are_called_ambiguous(
    first: dict[str, object], second: dict[str, object], is_ambiguous: bool
) -> None:
    """Same priority, as specific, and a turn that both match; what can never meet is not accused."""
    found = findings(rules(rule("a", **first), rule("b", **second)))
    assert (("ambiguous_rules", "rules[1].name") in found) == is_ambiguous


def test_rules_of_different_layers_compete_too() -> None:
    layers = [document(rules(rule("a"))), document(rules(rule("b")), Kind.WORKSPACE, "policy of ws")]
    found = [finding for finding in merge(layers, Settings()).findings if finding.code == "ambiguous_rules"]
    assert [finding.layer for finding in found] == ["policy of ws"]
    assert "'a' of the user's policy" in found[0].message


def test_a_policy_with_too_many_rules_to_compare_says_so() -> None:
    """A thousand rules of one rank take no second, and what was not compared is told."""
    many = rules(*(rule(f"r{n}", paths=[f"{n}/*.py", f"x{n}/{n}.md"]) for n in range(1_000)))
    assert [code for code, _ in findings(many)] == ["rules_not_compared"]


_PARTS = st.sampled_from(["a", "b", "*", "**", "a*", "*b", "?", "[ab]", "A"])
_PATTERNS = st.builds(
    lambda parts, end: "/".join(parts) + end, st.lists(_PARTS, min_size=1, max_size=3), st.sampled_from(["", "/"])
)
_PATHS = st.lists(st.sampled_from(["a", "b", "ab", "aa", "c"]), min_size=1, max_size=4).map("/".join)


@given(_PATTERNS, _PATTERNS, _PATHS)
def test_patterns_that_match_one_path_overlap(one: str, other: str, path: str) -> None:
    """Disjoint means disjoint: no path that both match is ever denied."""
    both = all(Privacy.compile(Settings(restricted_paths=(pattern,))).restricts(path) for pattern in (one, other))
    assert may_overlap(one, other) == may_overlap(other, one)
    if both:
        assert may_overlap(one, other)


def test_long_patterns_are_compared_quickly() -> None:
    assert may_overlap("**/" + "a*/**/" * 40 + "b", "**/" + "*a/**/" * 40 + "b")


# --- problems, page, command ----------------------------------------------------------------------------------------


def test_problems_of_a_reply_are_few() -> None:
    """Errors first; information stays out, and beyond a page the count stands for the rest."""
    value = rules(*(rule(f"r{n}", priority=n, model="acme/x") for n in range(40)), rule("bad", x=1))
    problems = merge([document(value)], Settings()).policy.problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[0].code == "unknown_key"
    assert problems[-1].code == "more_findings"
    assert merge([parse_text('{"version": 1}', Kind.USER, "u")], Settings()).policy.problems == ()


def test_the_page_explains_every_code() -> None:
    """Codes, severities and their order in `docs/policy.md` are those of the program."""
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (error|warning|information) \|", page, re.M)
    assert rows == [(code, severity.name.lower()) for code, severity in CODES.items()]


def test_the_example_on_the_page_has_no_findings() -> None:
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text("utf-8")
    example = re.search(r"```json\n(.*?)```", page, re.S)
    assert example is not None
    merged = merge([parse_text(example[1], Kind.USER, "u")], Settings())
    assert merged.findings == ()
    assert merged.policy != Policy()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "ws/.haversack").mkdir(parents=True)
    (tmp_path / "config/haversack").mkdir(parents=True)
    return tmp_path


def test_the_command_prints_layers_and_findings(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code 0 without errors, 1 with one; as text and as JSON, of both files."""
    where = ("--workspace", str(root / "ws"))
    assert run(capsys, "policy", *where)[0] == 0
    (root / "config/haversack/policy.json").write_text(json.dumps({"version": 1, "localOnly": True}))
    code, out, _ = run(capsys, "policy", *where)
    assert (code, "no_default_route" in out, "Only local models may serve." in out) == (0, True, True)
    own = {"version": 1, "localOnly": False, **rules(rule("auth", paths=["src/"], localOnly=True))}
    (root / "ws/.haversack/policy.json").write_text(json.dumps(own))
    code, out, _ = run(capsys, "policy", *where, "--json")
    told = json.loads(out)
    assert code == 1
    assert [each["code"] for each in told["findings"] if each["severity"] == "error"] == ["loosening"]
    assert told["policy"]["localOnly"] is True
    assert told["policy"]["rules"][0]["paths"] == ["src/"]
    code, out, _ = run(capsys, "policy", *where)
    assert (code, "loosening" in out, "auth" in out) == (1, True, True)


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "policy", "--schema")
    assert code == 0
    assert json.loads(out)["properties"]["version"] == {"const": 1, "description": "The version of this format."}


def test_a_question_can_bring_a_policy(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--policy` is the request's own layer: it restricts; a file that is none ends the command."""
    (root / "ws/cart.py").write_text("def add_item(cart, item):\n    cart.append(item)\n")
    path = root / "strict.json"
    words = ("context", "How does add_item work?", "--workspace", str(root / "ws"), "--policy", str(path), "--json")
    model = ("--model", REMOTE)
    path.write_text(json.dumps({"version": 1, "privacy": {"restrictedPaths": ["*.py"]}}))
    code, out, _ = run(capsys, *words, *model)
    assert code == 0
    assert json.loads(out)["blocks"] == []
    path.write_text('{"version": 1,}')
    code, out, _ = run(capsys, *words)
    assert (code, json.loads(out)["error"]["code"]) == (1, "policy_unreadable")
    path.unlink()
    assert run(capsys, *words)[0] == 1


def test_severities_are_those_of_the_protocol() -> None:
    assert [(each.name, int(each)) for each in Severity] == [("ERROR", 1), ("WARNING", 2), ("INFORMATION", 3)]


def test_a_route_of_more_models_than_are_tried_is_not_used() -> None:
    """Each may cost a fitting of the prompt, so a route has an end, and the finding says so."""
    names = [f"acme/m{n}" for n in range(MAX_FALLBACKS + 1)]
    declared = [{"name": name, "window": 8_000} for name in names]
    found = findings({**rules(rule(fallbacks=names)), "models": declared})
    assert ("too_many", "rules[0].fallbacks") in found
    assert ("too_many", "rules[0].fallbacks") not in findings(
        {**rules(rule(fallbacks=names[:MAX_FALLBACKS])), "models": declared}
    )
    merged = merge([document({**rules(rule(fallbacks=names)), "models": declared})], Settings())
    assert merged.policy.rules == ()
