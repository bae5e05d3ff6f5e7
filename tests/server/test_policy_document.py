"""Policy documents: what is read, what a later layer can change, what keeps files here when something is wrong."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from e2e.fakes import FakeIndexing, FakeLine
from hypothesis import given
from hypothesis import strategies as st

from haversack.cli.policy import document as written
from haversack.indexing import withheld_patterns
from haversack.policy import document
from haversack.policy.confinement import confined
from haversack.policy.document import Document, Kind, parse_text, parse_value
from haversack.policy.json_reader import Node, Unreadable, read_text, read_value
from haversack.policy.layers import Merged, merge
from haversack.policy.loading import MAX_BYTES, WORKSPACE_FILE, PolicyFiles
from haversack.policy.privacy import Privacy
from haversack.policy.values import KEYS
from haversack.session import Session
from haversack.types import (
    Capability,
    DeclaredModel,
    DefaultRoute,
    Effort,
    Folder,
    Intent,
    Policy,
    RemoteMode,
    Request,
    RoutingRule,
    Settings,
)

LOCAL, REMOTE = "ollama/qwen2.5-coder:7b", "openai/gpt-4o"
SCHEMA: dict[str, Any] = json.loads((resources.files("haversack.policy") / "policy.schema.json").read_text("utf-8"))
FAR = Settings(embedder="openai", embedder_endpoint="https://api.example.com/v1", embedder_model="m")

WHOLE: dict[str, Any] = {
    "$schema": "policy.schema.json",
    "version": 1,
    "default": {"model": LOCAL, "fallbacks": [REMOTE]},
    "rules": [
        {
            "name": "auth",
            "priority": 10,
            "effort": "high",
            "intent": "edit",
            "paths": ["src/auth/**"],
            "localOnly": True,
            "requiresCapabilities": ["tools", "jsonOutput"],
            "model": LOCAL,
            "fallbacks": ["ollama/llama3"],
            "costLimit": "0.25",
        }
    ],
    "models": [
        {
            "name": "acme/seer",
            "window": 64_000,
            "maxOutput": 4_000,
            "capabilities": ["images"],
            "requiresKey": True,
            "inputPrice": "1.5",
            "outputPrice": 6,
        }
    ],
    "allowDegraded": True,
    "localOnly": False,
    "privacy": {"restrictedPaths": ["data/"], "remote": {"mode": "ask", "blockedPaths": ["*.pem"]}},
    "documents": {"privilegedPaths": ["legal/"], "strategyPaths": ["plans/"], "tenants": {"acme": ["clients/acme/"]}},
    "records": {"keepRestricted": True},
}


def user(value: Mapping[str, object]) -> Document:
    return parse_text(json.dumps({"version": 1, **value}), Kind.USER, "user's policy")


def workspace(value: Mapping[str, object]) -> Document:
    return parse_text(json.dumps({"version": 1, **value}), Kind.WORKSPACE, "policy of ws")


def request(value: Mapping[str, object]) -> Document:
    return parse_value({"version": 1, **value}, Kind.REQUEST, "policy of the request")


def layered(*documents: Document, trusted: bool = True) -> Merged:
    return merge(documents, Settings(), trusted=trusted)


def codes(merged: Merged) -> set[str]:
    return {finding.code for finding in merged.findings}


def rule(name: str = "r", **more: object) -> dict[str, object]:
    return {"name": name, "model": LOCAL, **more}


# --- one document ---------------------------------------------------------------------------------------------------


def test_every_key_reaches_the_policy() -> None:
    """A document with every key becomes the policy it describes, from text and from an object alike."""
    expected = Policy(
        rules=(
            RoutingRule(
                "auth",
                LOCAL,
                ("ollama/llama3",),
                10,
                Effort.HIGH,
                Intent.EDIT,
                ("src/auth/**",),
                True,
                (Capability.TOOLS, Capability.JSON_OUTPUT),
                "0.25",
            ),
        ),
        default=DefaultRoute(LOCAL, (REMOTE,)),
        models=(DeclaredModel("acme/seer", 64_000, 4_000, (Capability.IMAGES,), True, "1.5", "6"),),
        allow_degraded=True,
        remote_mode=RemoteMode.ASK,
        restricted_paths=("data/",),
        blocked_paths=("*.pem",),
        privileged_paths=("legal/",),
        strategy_paths=("plans/",),
        tenants=(("acme", ("clients/acme/",)),),
        record_restricted=True,
    )
    assert layered(user(WHOLE)).policy == expected
    assert layered(request(WHOLE)).policy == expected


def test_no_document_is_no_policy() -> None:
    assert layered() == Merged(Policy(), ())


def test_what_is_printed_reads_back() -> None:
    """`haversack policy --json` writes the merged policy the way a file writes it."""
    policy = layered(user(WHOLE)).policy
    again: dict[str, Any] = json.loads(json.dumps(written(policy)))
    assert again.pop("closed") is False
    assert layered(user(again)).policy == policy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        '{"version": 1,}',
        '{"version": 1} x',
        "{'version': 1}",
        '{"version": NaN}',
        "// c",
    ],
)
def test_what_is_no_policy_closes(text: str) -> None:
    """Nothing of it is used, one finding says so, and every file counts as restricted."""
    merged = layered(parse_text(text, Kind.USER, "user's policy"))
    assert merged.policy.closed
    assert codes(merged) <= {"syntax", "wrong_type"}
    assert Privacy.compile(Settings(), (), merged.policy).restricts("any/file.py")


def test_hostile_shapes_close() -> None:
    """Depth, size, numbers and repeated keys beyond what a person writes are refused, each with its own code."""
    bomb = '{"version": 1, "rules": ' + "[" * 100_000
    assert codes(layered(parse_text(bomb, Kind.USER, "u"))) == {"too_deep"}
    assert codes(layered(parse_text(" " * (document.MAX_TEXT + 1), Kind.USER, "u"))) == {"too_large"}
    assert codes(layered(parse_text(f"[{'1,' * 110_000}1]", Kind.USER, "u"))) == {"too_large"}
    twice = '{"version": 1, "localOnly": true, "localOnly": false}'
    merged = layered(parse_text(twice, Kind.USER, "u"))
    assert codes(merged) == {"duplicate_key"}
    assert merged.policy.closed
    deep: object = {}
    for _ in range(5_000):
        deep = {"rules": deep}
    assert codes(layered(parse_value(deep, Kind.REQUEST, "r"))) == {"too_deep"}
    huge = layered(parse_text('{"version": 1, "rules": [{"priority": 1e99}]}', Kind.USER, "u"))
    assert "wrong_type" in codes(huge)


def test_a_list_beyond_its_limit_is_refused() -> None:
    many = layered(user({"rules": [rule(str(n), priority=n) for n in range(document.MAX_ITEMS + 1)]}))
    assert "too_many" in codes(many)
    assert many.policy.closed


@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_another_version_closes(version: object) -> None:
    """What a later format restricts is not known, so nothing may leave."""
    merged = layered(user({**WHOLE, "version": version}))
    assert codes(merged) == {"unknown_version"}
    assert merged.policy == Policy(closed=True, problems=merged.policy.problems)


@pytest.mark.parametrize(
    "value",
    [
        {"privacy": []},
        {"privacy": {"restrictedPaths": "data/"}},
        {"privacy": {"restrictedPaths": [7]}},
        {"privacy": {"restrictedPaths": [""]}},
        {"privacy": {"restricted": ["data/"]}},
        {"privacy": {"remote": {"mode": "never"}}},
        {"privacy": {"remote": {"mode": 1}}},
        {"privacy": {"remote": {"blocked": ["data/"]}}},
        {"localOnly": "true"},
        {"localonly": True},
        {"privcy": {"restrictedPaths": ["data/"]}},
        {"restrictedPaths": ["data/"]},
        {"documents": {"privilegedPaths": {}}},
        {"documents": {"tenants": ["acme"]}},
        {"rules": {"name": "r"}},
        {"rules": ["r"]},
        {"rules": [rule(localOnly=True, paths="data/")]},
        {"rules": [rule(localOnly=True, path=["data/"])]},
        {"rules": [rule(localonly=True, path=["data/"])]},
    ],
)
def test_a_fault_in_what_restricts_closes(value: dict[str, object]) -> None:
    """A restriction that nobody can read may mean any file."""
    merged = layered(user(value))
    assert merged.policy.closed, merged.findings


@pytest.mark.parametrize(
    "value", [{"rules": [rule(path=["a"])]}, {"comment": "x"}, {"default": 1}, {"models": {}}, {"records": 1}]
)
def test_a_fault_elsewhere_does_not_close(value: dict[str, object]) -> None:
    merged = layered(user(value))
    assert not merged.policy.closed
    assert merged.policy.problems


def test_a_rule_with_a_fault_is_not_used() -> None:
    """Half of its conditions would match too much; the rules beside it stay."""
    faults = [
        rule("a", paths="src/"),
        rule("b", intent="edti"),
        rule("c", costLimit="$3"),
        {"name": "d"},
        rule("e", x=1),
    ]
    merged = layered(user({"rules": [*faults, rule("good")]}))
    assert [each.name for each in merged.policy.rules] == ["good"]


def test_paths_of_a_faulty_local_rule_stay_here() -> None:
    """The rule is not used, but what it was to keep on this machine is known."""
    flags: list[dict[str, object]] = [{"localOnly": True, "intent": "edti"}, {"localonly": True}, {"localOnly": "yes"}]
    for flag in flags:
        policy = layered(user({"rules": [rule() | {"paths": ["secret/"]} | flag]})).policy
        assert policy.rules == ()
        assert Privacy.compile(Settings(), (), policy).restricts("secret/key.py")
        assert not Privacy.compile(Settings(), (), policy).restricts("open.py")


def test_a_switch_that_loosens_is_off_when_it_cannot_be_read() -> None:
    merged = layered(
        user({"allowDegraded": "yes", "records": {"keepRestricted": 1}}), workspace({"allowDegraded": True})
    )
    assert not merged.policy.allow_degraded
    assert not merged.policy.record_restricted


# --- layers: every way to loosen is refused -------------------------------------------------------------------------


def test_path_lists_only_grow() -> None:
    """No layer can take a pattern away, not even by naming none."""
    first = user({"privacy": {"restrictedPaths": ["a/"], "remote": {"blockedPaths": ["b/"]}}})
    second = workspace({"privacy": {"restrictedPaths": [], "remote": {"blockedPaths": ["c/", "b/"]}}})
    third = request({"privacy": {"restrictedPaths": ["!a/"]}, "documents": {"privilegedPaths": ["d/"]}})
    policy = layered(first, second, third).policy
    assert policy.blocked_paths == ("b/", "c/")
    assert policy.privileged_paths == ("d/",)
    privacy = Privacy.compile(Settings(), (), policy)
    assert all(privacy.restricts(f"{folder}/x.py") for folder in "abc")


def test_lists_of_documents_only_grow() -> None:
    one = {"privilegedPaths": ["a/"], "strategyPaths": ["b/"], "tenants": {"t": ["c/"]}}
    two = {"privilegedPaths": ["d/"], "strategyPaths": [], "tenants": {"t": ["e/"], "u": ["f/"]}}
    policy = layered(user({"documents": one}), workspace({"documents": two})).policy
    assert policy.privileged_paths == ("a/", "d/")
    assert policy.strategy_paths == ("b/",)
    assert policy.tenants == (("t", ("c/", "e/")), ("u", ("f/",)))


@pytest.mark.parametrize("later", [workspace, request])
def test_local_only_stays(later: Any) -> None:
    merged = layered(user({"localOnly": True}), later({"localOnly": False}))
    assert merged.policy.local_only
    assert "loosening" in codes(merged)
    tightened = layered(user({"localOnly": False}), later({"localOnly": True}))
    assert tightened.policy.local_only
    assert "loosening" not in codes(tightened)


@pytest.mark.parametrize(
    ("earlier", "later", "stays"),
    [
        ("deny", "ask", "deny"),
        ("deny", "allow", "deny"),
        ("ask", "allow", "ask"),
        ("allow", "ask", "ask"),
        ("ask", "deny", "deny"),
    ],
)
def test_remote_mode_gets_only_stricter(earlier: str, later: str, stays: str) -> None:
    merged = layered(
        user({"privacy": {"remote": {"mode": earlier}}}), workspace({"privacy": {"remote": {"mode": later}}})
    )
    assert merged.policy.remote_mode == stays
    assert ("loosening" in codes(merged)) == (stays != later)


def test_a_denied_switch_stays_denied() -> None:
    """`allowDegraded` and `keepRestricted` loosen: an explicit no stays, no answer leaves it to the next layer."""
    on, off = (
        {"allowDegraded": value, "records": {"keepRestricted": value}} for value in (True, False)
    )  # fmt: skip
    for layers, result, loosens in (
        ((user(off), workspace(on)), False, True),
        ((user(on), workspace(off)), False, False),
        ((user({}), workspace(on)), True, False),
        ((user(off), workspace({}), request(on)), False, True),
    ):
        merged = layered(*layers)
        assert merged.policy.allow_degraded is result
        assert merged.policy.record_restricted is result
        assert ("loosening" in codes(merged)) is loosens


def test_a_rule_keeps_its_name() -> None:
    """A later rule of the same name does not take its place; what it would keep here is kept all the same."""
    merged = layered(
        user({"rules": [rule("auth", localOnly=True, paths=["src/auth/"])]}),
        workspace({"rules": [rule("auth", paths=["more/"], localOnly=True), rule("new", priority=2)]}),
    )
    assert [each.name for each in merged.policy.rules] == ["auth", "new"]
    assert merged.policy.rules[0].paths == ("src/auth/",)
    assert "duplicate_rule" in codes(merged)
    assert Privacy.compile(Settings(), (), merged.policy).restricts("more/x.py")


def test_a_local_default_stays_local() -> None:
    """Where nothing left this machine by default, no later layer makes it leave."""
    merged = layered(
        user({"default": {"model": LOCAL}}), workspace({"default": {"model": LOCAL, "fallbacks": [REMOTE]}})
    )
    assert merged.policy.default == DefaultRoute(LOCAL)
    assert "loosening" in codes(merged)
    other = layered(user({"default": {"model": REMOTE}}), workspace({"default": {"model": LOCAL}}))
    assert other.policy.default == DefaultRoute(LOCAL)


def test_one_layer_that_is_closed_closes_all() -> None:
    broken = parse_text("{", Kind.USER, "user's policy")
    for layers in (
        (broken, workspace({})),
        (user({}), workspace({"privacy": 1})),
        (user({}), request({"localOnly": 1})),
    ):
        assert layered(*layers).policy.closed


def test_an_untrusted_workspace_only_tightens() -> None:
    """Of its file the restrictions count; routes, models and switches that loosen do not."""
    document = workspace(WHOLE | {"localOnly": True})
    merged = layered(user({}), document, trusted=False)
    policy = merged.policy
    assert (policy.rules, policy.default, policy.models) == ((), None, ())
    assert not policy.allow_degraded
    assert not policy.record_restricted
    assert policy.local_only
    assert policy.remote_mode is RemoteMode.ASK
    assert policy.privileged_paths == ("legal/",)
    privacy = Privacy.compile(Settings(), (), policy)
    assert all(privacy.restricts(path) for path in ("data/x", "key.pem", "src/auth/login.py"))
    assert "not_trusted" in codes(merged)
    assert layered(user(WHOLE), trusted=False).policy.rules
    off = workspace({"allowDegraded": False})
    assert not layered(user({"allowDegraded": True}), off, trusted=False).policy.allow_degraded


def test_a_layer_never_loosens_what_stands() -> None:
    """Whatever a later layer says, what was restricted before it stays restricted."""

    @given(_policies, _policies)
    def holds(first: dict[str, Any], second: dict[str, Any]) -> None:
        before, after = layered(user(first)).policy, layered(user(first), workspace(second)).policy
        assert after.closed >= before.closed
        assert after.local_only >= before.local_only
        order = list(RemoteMode)
        assert order.index(after.remote_mode) >= order.index(before.remote_mode)
        old, new = (Privacy.compile(Settings(), (), each) for each in (before, after))
        assert all(new.restricts(path) for path in _PATHS if old.restricts(path))
        if first.get("allowDegraded") is False:
            assert not after.allow_degraded
        assert [each.name for each in before.rules] == [each.name for each in after.rules][: len(before.rules)]

    holds()


_PATHS = ("a/x.py", "b/y.py", "b/c/z.key", "w.md")
_globs = st.lists(st.sampled_from(["a/", "b/**", "*.key", "!a/", "[", "c"]), max_size=2)
_policies = st.fixed_dictionaries(
    {},
    optional={
        "localOnly": st.sampled_from([True, False, "no"]),
        "allowDegraded": st.booleans(),
        "privacy": st.fixed_dictionaries(
            {},
            optional={
                "restrictedPaths": _globs,
                "remote": st.fixed_dictionaries(
                    {}, optional={"mode": st.sampled_from(["allow", "ask", "deny"]), "blockedPaths": _globs}
                ),
            },
        ),
        "rules": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from("pq"), "model": st.sampled_from([LOCAL, REMOTE, "bad"])},
                optional={"localOnly": st.booleans(), "paths": _globs},
            ),
            max_size=3,
        ),
    },
)


# --- the JSON reader ------------------------------------------------------------------------------------------------


def plain(node: Node) -> object:
    if node.members is not None:
        return {member.key: plain(member.value) for member in node.members}
    return [plain(item) for item in node.items] if node.items is not None else node.scalar


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(st.characters(codec="utf-8")) | st.just(0.25),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_json, st.sampled_from([None, 1]), st.booleans())
def test_the_reader_agrees_with_the_standard_one(value: object, indent: int | None, ascii_only: bool) -> None:
    """Every JSON text gives the same values, from text and from an object, and each span holds its value."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if text.count("[") + text.count("{") > 10:
        return
    node = read_text(text)
    assert plain(node) == json.loads(text) == plain(read_value(value))
    for member in node.members or ():
        assert json.loads(text[slice(*member.key_span)]) == member.key
        assert json.loads(text[slice(*member.value.span)]) == plain(member.value)


@given(st.text(alphabet='{}[]",:0123e+-.\\u tfn"ruealsn', max_size=12))
def test_the_reader_takes_no_more_than_the_standard_one(text: str) -> None:
    with contextlib.suppress(Unreadable):
        assert plain(read_text(text)) == json.loads(text)


# --- schema and parser ----------------------------------------------------------------------------------------------


def schema_keys() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}

    def walk(schema: dict[str, Any], place: str) -> None:
        if "properties" in schema:
            assert schema["additionalProperties"] is False
            found[place] = tuple(schema["properties"])
            for key, inner in schema["properties"].items():
                walk(inner, f"{place}.{key}".lstrip("."))
        elif "items" in schema:
            walk(schema["items"], f"{place}[]")

    walk(SCHEMA, "")
    return found


def test_schema_and_parser_have_the_same_keys() -> None:
    assert schema_keys() == {place: tuple(keys) for place, keys in KEYS.items()}


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("place", [f"{place}.{key}".lstrip(".") for place, keys in KEYS.items() for key in keys])
def test_schema_and_parser_agree_on_each_key(place: str) -> None:
    """With every key both are content; with a wrong type at any of them both object."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert list(validator.iter_errors(WHOLE)) == []
    broken = json.loads(json.dumps(WHOLE))
    at = broken
    *parents, last = place.replace("[]", ".0").split(".")
    for part in parents:
        at = at[int(part)] if part == "0" else at[part]
    for wrong in (
        None,
        0.5 if last not in ("costLimit", "inputPrice", "outputPrice") else -1,
        [{}],
        {"x": 1},
        "   ",
    ):
        at[last] = wrong
        document = parse_value(broken, Kind.USER, "u")
        assert list(validator.iter_errors(broken)), (place, wrong)
        assert any(finding.place.startswith(place.replace("[]", "[0]")) for finding in document.findings), (
            place,
            wrong,
        )


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "ws"
    (root / ".haversack").mkdir(parents=True)
    return Folder("ws", root.as_uri(), os.path.realpath(root))


def put(folder: Folder, value: object) -> Path:
    path = Path(folder.root) / WORKSPACE_FILE
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def read(files: PolicyFiles, *folders: Folder, **more: Any) -> Merged:
    return files.merged(folders, Settings(), **{"trusted": True, **more})


def test_files_are_read_when_they_change(folder: Folder, tmp_path: Path) -> None:
    """Both files count, a change shows at the next look, and what did not change is not read again."""
    mine = tmp_path / "config" / "policy.json"
    files = PolicyFiles(mine)
    assert read(files, folder).policy == Policy()
    mine.parent.mkdir()
    mine.write_text('\ufeff{"version": 1, "localOnly": true}', encoding="utf-8")
    path = put(folder, {"version": 1, "privacy": {"restrictedPaths": ["a/"]}})
    first = read(files, folder)
    assert first.policy.local_only
    assert first.policy.restricted_paths == ("a/",)
    assert first.layers == ("user's policy", "policy of ws")
    assert read(files, folder) is first
    put(folder, {"version": 1, "privacy": {"restrictedPaths": ["bb/"]}})
    assert read(files, folder).policy.restricted_paths == ("bb/",)
    path.unlink()
    assert read(files, folder).policy.restricted_paths == ()
    assert not read(files, folder).policy.closed


def test_a_link_out_of_the_folder_closes(folder: Folder, tmp_path: Path) -> None:
    """Neither the file nor its folder may lead elsewhere; a link inside the folder is followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "policy.json").write_text('{"version": 1}')
    path = Path(folder.root) / WORKSPACE_FILE
    path.symlink_to(outside / "policy.json")
    assert codes(read(PolicyFiles(), folder)) == {"outside_folder"}
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(outside)
    merged = read(PolicyFiles(), folder)
    assert codes(merged) == {"outside_folder"}
    assert merged.policy.closed
    path.parent.unlink()
    path.parent.mkdir()
    (Path(folder.root) / "shared.json").write_text('{"version": 1, "localOnly": true}')
    path.symlink_to("../shared.json")
    assert read(PolicyFiles(), folder).policy.local_only


def test_a_folder_or_a_pipe_in_its_place_leaves_no_file_open(folder: Folder) -> None:
    """It is looked at with every question, and an open file for each would be all there are one day."""
    path = Path(folder.root) / WORKSPACE_FILE
    for make, remove in ((path.mkdir, path.rmdir), (lambda: os.mkfifo(path), path.unlink)):
        make()
        before = set(os.listdir("/dev/fd"))
        for _ in range(3):
            assert codes(read(PolicyFiles(), folder)) == {"unreadable"}
        assert len(os.listdir("/dev/fd")) <= len(before)
        remove()


def test_a_file_that_cannot_be_read_closes(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, a folder, a link to nothing, bytes that are no text, and too many of them."""
    path = Path(folder.root) / WORKSPACE_FILE
    os.mkfifo(path)
    assert codes(read(PolicyFiles(), folder)) == {"unreadable"}
    path.unlink()
    path.mkdir()
    assert codes(read(PolicyFiles(), folder)) == {"unreadable"}
    path.rmdir()
    path.symlink_to("missing.json")
    assert codes(read(PolicyFiles(), folder)) == {"unreadable"}
    path.unlink()
    path.write_bytes(b'{"version": 1, "x": "\xff"}')
    assert codes(read(PolicyFiles(), folder)) == {"unreadable"}
    path.write_bytes(b" " * (MAX_BYTES + 1))
    assert codes(read(PolicyFiles(), folder)) == {"too_large"}
    put(folder, {"version": 1})

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    merged = read(PolicyFiles(), folder)
    assert codes(merged) == {"unreadable"}
    assert merged.policy.closed


# --- what follows from it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [Policy(closed=True), Policy(local_only=True), Policy(remote_mode=RemoteMode.DENY)],
    ids=["closed", "local", "deny"],
)
def test_services_elsewhere_are_off_where_nothing_may_leave(policy: Policy) -> None:
    """Neither text to embed nor a question for search words goes out; what runs right here goes on."""
    address = "https://api.example.com"
    terms, summaries = {"terms_endpoint": address, "terms_model": "m"}, {"summarizer_endpoint": address}
    far = confined(Settings(**{**_far(), **terms, **summaries}), policy)
    assert (far.embedder, far.terms_endpoint, far.summarizer_endpoint) == ("static", "", "")
    near = Settings(
        embedder="ollama", embedder_endpoint="http://127.0.0.1:1", embedder_model="m", terms_endpoint="http://[::1]:2"
    )
    assert confined(near, policy) == near
    assert confined(FAR, Policy(remote_mode=RemoteMode.ASK)).embedder == "openai"


def _far() -> dict[str, Any]:
    return {"embedder": "openai", "embedder_endpoint": "https://api.example.com/v1", "embedder_model": "m"}


def test_the_policy_withholds_files_from_embedding_services() -> None:
    """Its lists and the paths of its local-only rules reach the process that embeds."""
    rules = (RoutingRule("r", LOCAL, paths=("auth/",), local_only=True), RoutingRule("s", LOCAL, paths=("open/",)))
    policy = Policy(rules=rules, restricted_paths=("a/",), blocked_paths=("b/",))
    assert set(withheld_patterns(confined(FAR, policy))) == {"a/", "b/", "auth/"}


@pytest.mark.asyncio
async def test_a_session_answers_with_the_policy_of_the_moment(folder: Folder) -> None:
    """The file as it is when the question is asked, and the request's own layer for that question alone."""
    line = FakeLine()
    index = FakeIndexing()
    put(folder, {"version": 1, "privacy": {"restrictedPaths": ["a/"]}})
    async with Session(line=line, indexing=index) as session:
        session.add_folder(folder.uri, "ws")
        assert session.snapshot().policy.restricted_paths == ("a/",)
        session.start_indexing()
        await session.context(Request("hello", policy={"version": 1, "localOnly": True}))
        put(folder, {"version": 1, "privacy": {"restrictedPaths": ["longer/"]}})
        await session.context(Request("hello"))
        first, second = (workspace.snapshot for workspace in line.workspaces)
        assert (first.policy.local_only, second.policy.local_only) == (True, False)
        assert first.settings.restricted_paths == ("a/",)
        assert second.policy.restricted_paths == ("longer/",)


@pytest.mark.asyncio
async def test_a_saved_policy_reaches_the_indexes(folder: Folder) -> None:
    """What may be sent out for embedding follows the file without a question being asked."""
    async with Session(line=FakeLine(), indexing=FakeIndexing()) as session:
        session.add_folder(folder.uri, "ws")
        session.update_settings({"embedding": {"provider": "openai", "endpoint": "https://e.example/v1", "model": "m"}})
        index = session._folders["ws"]
        assert index._settings.embedder == "openai"
        path = put(folder, {"version": 1, "localOnly": True})
        session.document_saved(path.as_uri())
        while session._closing:
            await next(iter(session._closing))
        assert index._settings.embedder == "static"
