"""Which rule a turn falls under, and the paths and needs of the turn."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line_builders import make_candidate, make_file, make_marked, make_plan

from haversack.policy import rules as routing
from haversack.policy.patterns import MAX_REMEMBERED, compile_pattern, spell, steps
from haversack.policy.turn import needs, turn_paths
from haversack.types import (
    ActiveDocument,
    Capability,
    Document,
    Effort,
    Folder,
    Intent,
    Kind,
    Mention,
    MentionKind,
    Message,
    Request,
    Role,
    RoutingRule,
    Settings,
    Snapshot,
    Source,
    Supplied,
    ToolCall,
)


def rule(name: str, **changes: Any) -> RoutingRule:
    return RoutingRule(name, "openai/gpt-4o", **changes)


def winner(rules: list[RoutingRule], intent: Intent = Intent.CHAT, *paths: str) -> str:
    found = routing.match(rules, intent, paths)
    return found.rule.name if found else ""


AUTH = rule("auth", intent=Intent.EDIT, paths=("src/auth/**", "*.pem"))


@pytest.mark.parametrize(
    ("intent", "paths", "matches"),
    [
        (Intent.EDIT, ("src/auth/login.ts",), True),
        (Intent.EDIT, ("docs/a.md", "deep/down/key.pem"), True),
        (Intent.CHAT, ("src/auth/login.ts",), False),
        (Intent.EDIT, ("src/author.ts",), False),
        (Intent.EDIT, (), False),
    ],
)
def test_kinds_of_conditions_all_hold_and_one_glob_is_enough(
    intent: Intent, paths: tuple[str, ...], matches: bool
) -> None:
    """A rule with intent and paths needs both, of its paths any."""
    assert bool(winner([AUTH], intent, *paths)) is matches


def test_a_rule_without_conditions_takes_everything() -> None:
    """It is a catch-all, also for a turn without paths, and for every intent there is."""
    assert all(winner([rule("all")], intent) == "all" for intent in Intent)


@pytest.mark.parametrize("bad", ["[", "a[", "", "  ", "/", "!src/**", "# note", "x" * 5_000, "\\", "[[:nope:]]"])
def test_a_malformed_glob_matches_nothing_and_disables_no_other(bad: str) -> None:
    """Nor does it turn its rule into one without paths."""
    assert winner([rule("r", paths=(bad,))], Intent.CHAT, "src/a.py", "x", "!src/a") == ""
    assert winner([rule("r", paths=(bad, "src/**"))], Intent.CHAT, "src/a.py") == "r"


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("x[ab]", "xb"), ("x[]a]", "x]"), ("[ab]x]", "ax]"), ("x\\yz", "xyz"), ("x\\*z", "x*z"),
        ("src/*.py", "src/a.py"), ("src/a.py", "src/a.py"), ("*.test.py", "src/a.test.py"), ("a?c", "abc"),
        ("src/**", "src/a"), ("docs/", "docs/a"), ("Straße", "src/STRASSE"),
    ],
)  # fmt: skip
def test_a_glob_is_found_whatever_it_ends_with(glob: str, path: str) -> None:
    """Globs are sorted by their plain end, which ends before wildcards, classes, escapes and slashes."""
    assert winner([rule("r", paths=(glob,))], Intent.CHAT, path) == "r"
    assert winner([rule("r", paths=(glob,))], Intent.CHAT, "other") == ""


def test_the_order_is_priority_then_specificity_then_place() -> None:
    """Lower priority first; then path and intent, path, intent, none; then the order of configuration."""
    paths, intent = {"paths": ("src/**",)}, {"intent": Intent.EDIT}
    ladder = [rule("none"), rule("intent", **intent), rule("path", **paths), rule("both", **paths, **intent)]
    for drop in range(4):
        left = ladder[: 4 - drop]
        for seed in range(5):
            mixed = random.Random(seed).sample(left, len(left))
            assert winner(mixed, Intent.EDIT, "src/a.py") == left[-1].name
    assert winner([*ladder, rule("urgent", priority=999)], Intent.EDIT, "src/a.py") == "urgent"
    assert winner([rule("first"), rule("second")]) == "first"


def test_the_match_says_what_matched() -> None:
    """Rule, intent, path and glob, as a person reads them."""
    found = routing.match([AUTH], Intent.EDIT, ("README.md", "src/auth/login.ts"))
    assert found is not None
    assert found.reason == "the task is edit and src/auth/login.ts is in src/auth/**"
    everything = routing.match([rule("all")], Intent.CHAT, ())
    assert everything is not None
    assert everything.reason == "it takes every request"


GLOBS = st.sampled_from(
    ["src/**", "*.py", "/a.py", "src/auth/", "src/*/x.py", "**/x.py", "a[b", "SRC/Auth/*.ts", "docs", "src/auth", "**",
     "b/**/c", "é*"]
) | st.text("ab/*?[]\\!.", min_size=1, max_size=7)  # fmt: skip
PATHS = st.sampled_from(
    ["a.py", "src/a.py", "src/auth/login.ts", "src/auth/x.py", "docs/b/q/c", "b/c", "b/q/c", "Docs/é.md", "x", "src",
     "src/auth"]
) | st.text("ab/].*\\", min_size=1, max_size=7)  # fmt: skip
RULES = st.lists(
    st.builds(
        RoutingRule,
        name=st.just("r"),
        model=st.just("m"),
        priority=st.integers(0, 2),
        intent=st.none() | st.sampled_from([Intent.EDIT, Intent.CHAT]),
        paths=st.lists(GLOBS, max_size=3).map(tuple),
    ),
    max_size=8,
)


@given(RULES, st.sampled_from([Intent.EDIT, Intent.CHAT, Intent.PLAN]), st.lists(PATHS, max_size=4))
def test_the_fast_match_is_the_plain_one(rules: list[RoutingRule], intent: Intent, paths: list[str]) -> None:
    """Compiled rules find what trying every glob of every rule on every path finds."""
    numbered = [replace(each, name=str(at)) for at, each in enumerate(rules)]

    def holds(each: RoutingRule) -> bool:
        patterns = [pattern for glob in each.paths if (pattern := compile_pattern(glob)) is not None]
        meets = any(p.matches(step) for p in patterns for path in paths for step in steps(spell(path)))
        return each.intent in (None, intent) and (meets or not each.paths)

    matching = [each for each in numbered if holds(each)]
    expected = min(matching, key=lambda each: (each.priority, -routing.specificity(each), int(each.name)), default=None)
    assert winner(numbered, intent, *paths) == (expected.name if expected else "")


def test_what_is_remembered_of_paths_is_bounded() -> None:
    """A workspace of any size costs no more than so many paths of memory, and its last path is still matched."""
    rules = [rule("r", paths=("pkg/last",))]
    paths = [f"pkg/{at}" for at in range(MAX_REMEMBERED + 10)]
    assert winner(rules, Intent.CHAT, *paths, "pkg/last") == "r"
    compiled = next(each for each in routing._kept if each.given == tuple(rules))
    assert len(compiled._paths) <= MAX_REMEMBERED


# --- paths and needs of the turn ---

FOLDERS = (Folder("api", "file:///w/api", "/w/api"), Folder("api/v2", "file:///w/v2", "/w/v2"))


def snapshot(*documents: Document) -> Snapshot:
    return Snapshot(FOLDERS, {each.uri: each for each in documents}, Settings(), 0.0)


def test_the_paths_of_a_turn_are_all_that_is_pointed_at() -> None:
    """Mentions as found and as written, the active file, what is brought, files in the diff; each once, in order."""
    marked = [
        make_marked(make_candidate("m", make_file("src/found.py", folder="api"), source=Source.MENTIONS)),
        make_marked(make_candidate("s", None, source=Source.SUPPLIED, text="x", origins=("api/v2/lib/given.py",))),
        make_marked(
            make_candidate("d", None, kind=Kind.DIFF, source=Source.DIFF, text="", origins=("api/changed.py",))
        ),
        make_marked(make_candidate("h", make_file("guess.py", folder="api"), source=Source.HYBRID)),
    ]
    diff = 'diff --git a/old/name.py b/new/name.py\n@@ x\n-diff\ndiff --git "a/old.py" "b/sp ace.py"\n'
    request = Request(
        "q",
        active=ActiveDocument("file:///w/api/open/file.py"),
        supplied=(Supplied("1", "t", "x", path="./notes/../given.md"), Supplied("2", "patch", diff)),
    )
    mentions = (
        Mention("src/found.py"),
        Mention("nosuch/here.py", MentionKind.PATH),
        Mention("docs/", MentionKind.FOLDER),
        Mention("SomeClass"),
        Mention("../outside.py", MentionKind.PATH),
        Mention("/etc/passwd", MentionKind.PATH),
        Mention("diff", MentionKind.DIFF),
    )
    plan = make_plan(request=request, mentions=mentions)
    assert turn_paths(plan, marked, snapshot()) == (
        "src/found.py", "nosuch/here.py", "docs", "open/file.py", "lib/given.py", "given.md", "new/name.py",
        "sp ace.py", "changed.py",
    )  # fmt: skip


def test_an_open_document_is_known_by_its_buffer() -> None:
    """Its path is the session's; one outside every folder has none."""
    document = Document("file:///w/api/a.py", "api", "a.py", "", "python", True)
    plan = make_plan(request=Request("q", active=ActiveDocument("file:///w/api/a.py")))
    assert turn_paths(plan, (), snapshot(document)) == ("a.py",)
    outside = make_plan(request=Request("q", active=ActiveDocument("untitled:Untitled-1")))
    assert turn_paths(outside, (), snapshot()) == ()


@pytest.mark.parametrize(
    ("request_", "effort", "wanted"),
    [
        (Request("q"), Effort.MEDIUM, ()),
        (Request("q", tools_tokens=5), Effort.MEDIUM, (Capability.TOOLS,)),
        (Request("q", history=(Message(Role.TOOL, "r", tool_call_id="1"),)), Effort.LOW, (Capability.TOOLS,)),
        (
            Request("q", history=(Message(Role.ASSISTANT, "", (ToolCall("1", "f", "{}"),)),)),
            Effort.LOW,
            (Capability.TOOLS,),
        ),
        (Request("q"), Effort.HIGH, (Capability.REASONING,)),
        (Request("q", needs=(Capability.IMAGES,)), Effort.XHIGH, (Capability.IMAGES, Capability.REASONING)),
    ],
)
def test_needs_follow_from_the_turn(request_: Request, effort: Effort, wanted: tuple[Capability, ...]) -> None:
    """Tools from schemas and earlier calls, reasoning from the effort, and what the request says; then the rule's."""
    assert needs(request_, effort, None) == wanted
    gate = rule("r", requires=(Capability.MEMORY,))
    assert needs(request_, effort, gate) == (*wanted, Capability.MEMORY)
