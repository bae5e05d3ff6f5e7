"""Text that does not say where it is from, and quotes restricted files word for word."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run

from haversack import pipeline
from haversack.mark import WITHHELD, mark_history, may_not_leave
from haversack.policy.privacy import Privacy
from haversack.policy.quotes import Quotes
from haversack.types import Message, Request, Role, Settings, Supplied, ToolCall

LINES = tuple(f'CANARY_{number} = "a value that nobody else should read {number}"\n' for number in range(6))
SHARED = "    return sorted(items, key=lambda item: item.created_at, reverse=True)\n"
IMPORTS = "from collections.abc import Callable, Iterable, Mapping, Sequence\n"
SETTINGS = Settings(restricted_paths=("private/",), model="openai/gpt-4o")
FILES = {"private/b.py": IMPORTS + "".join(LINES) + SHARED, "x.py": f"def newest(items):\n{SHARED}"}


def world(tmp_path: Path) -> World:
    return World(tmp_path, {"ws": FILES}, settings=SETTINGS)


def past(*messages: Message) -> Request:
    return Request("how do CANARY values and newest work?", history=(Message(Role.USER, "look at it"), *messages))


WAYS = {
    "verbatim": lambda line: line,
    "in a diff": lambda line: f"+{line}",
    "taken out of a diff": lambda line: f"-    {line}",
    "with line numbers": lambda line: f"  12 | {line}",
    "cited": lambda line: f"> {line}",
    "in a sentence": lambda line: f"It says `{line.strip()}` there.\n",
    "indented anew, with other line ends": lambda line: f"\t\t{line.rstrip()}  \r\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_message_without_origins_that_quotes_a_restricted_line_is_withheld(tmp_path: Path, way: str) -> None:
    """From the model, from a tool, and in the arguments of a call."""
    here = world(tmp_path)
    quote = WAYS[way](LINES[1])
    answer = Message(Role.ASSISTANT, f"Here:\n{quote}Done.")
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "write", json.dumps({"files": [{"text": quote}]})),))
    bundle = run(pipeline.run(past(answer, call, Message(Role.TOOL, quote, tool_call_id="1")), here.workspace()))
    assert not bundle.route.model.local
    assert "nobody else should read" not in repr(bundle.prompt)
    assert "history_restricted" in {problem.code for problem in bundle.problems}


def test_what_open_files_say_too_is_not_withheld(tmp_path: Path) -> None:
    """Lines that both have, and imports, which all files have."""
    said = Message(Role.ASSISTANT, f"```\n{IMPORTS}{SHARED}```\n")
    bundle = run(pipeline.run(past(said), world(tmp_path).workspace()))
    assert "item.created_at" in bundle.prompt.messages[-2].content
    assert "history_restricted" not in {problem.code for problem in bundle.problems}


def test_short_and_few_lines_prove_nothing() -> None:
    quotes = Quotes.of([["x = 1\n", "total = price * amount - rebate\n", "another_line = of_this_kind\n"]], [])
    assert not quotes.inside("x = 1\ntotal = price * amount - rebate\n")
    assert quotes.inside("total = price * amount - rebate\nanother_line = of_this_kind")
    assert not quotes.fill("total = price * amount - rebate\nanother_line = of_this_kind")


def test_a_moved_file_is_as_restricted_in_the_diff_as_where_it_came_from(tmp_path: Path) -> None:
    """The side that was taken away stands in the same diff, so the side that came is known for what it is."""
    here = world(tmp_path)
    identity = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        subprocess.run(["git", *identity, *words], cwd=tmp_path / "ws", check=True, capture_output=True)
    (tmp_path / "ws/private/b.py").rename(tmp_path / "ws/moved.py")
    here.write("ws", "x.py", "def newest(items):\n    return CHANGED\n")
    bundle = run(pipeline.run(Request("review my changes"), here.workspace()))
    assert not bundle.route.model.local
    assert ("nobody else should read" in repr(bundle), "return CHANGED" in repr(bundle.prompt)) == (False, True)


def test_closed_rules_hold_back_what_models_and_tools_said() -> None:
    """Nobody knows what is restricted, so nobody knows what they quoted."""
    said = (Message(Role.SYSTEM, "s"), Message(Role.USER, "u"), Message(Role.ASSISTANT, "a"), Message(Role.TOOL, "t"))
    kept, problems = mark_history(said, Privacy(closed=True))
    assert [message.content for message in kept[:2]] == ["s", "u"]
    assert not {"a", "t"} & {message.content for message in kept}
    assert [problem.code for problem in problems] == ["history_restricted"]


def test_a_long_text_is_compared_in_no_time() -> None:
    quotes = Quotes.of([LINES], [])
    assert not quotes.inside("+ " * 500_000 + "\n" + "1:" * 500_000 + "\n" * 100_000 + "`" * 100_000)


HEADERS = {
    "git": "diff --git a/private/b.py b/private/b.py\nindex 1..2 100644\n@@ -1 +1 @@\n-k = 1\n+k = 'CANARY'\n",
    "one side": "--- a/x.py\n+++ b/private/b.py\n@@ -1 +1 @@\n-k = 1\n+k = 'CANARY'\n",
    "other side, with its time": "--- private/b.py\t2024-01-01 10:00:00\n+++ /dev/null\n@@ -1 +0,0 @@\n-k = 'CANARY'\n",
    "quoted": "--- /dev/null\n+++ \"b/private/\\303\\244.py\"\n@@ -0,0 +1 @@\n+k = 'CANARY'\n",
    "inside a quote": "> diff --git a/private/b c.py b/private/b c.py\n> +k = 'CANARY'\n",
    "moved, with line ends of Windows": "diff --git a/x.py b/y.py\r\nrename from private/b.py\r\n+k = 'CANARY'\r\n",
}


@pytest.mark.parametrize("form", HEADERS)
def test_a_diff_is_as_restricted_as_the_files_its_headers_name(tmp_path: Path, form: str) -> None:
    """In what somebody said, in a call's arguments and in a supplied item: no line of it is in a file any more."""
    here, text = world(tmp_path), f"Look:\n{HEADERS[form]}"
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "apply", json.dumps({"patch": text})),))
    request = past(Message(Role.USER, text), Message(Role.ASSISTANT, text), call)
    request = replace(request, text="why?", supplied=(Supplied("s", "a change", text),))
    bundle = run(pipeline.run(request, here.workspace()))
    assert not bundle.route.model.local
    assert "CANARY" not in repr(bundle.prompt)


def test_a_diff_of_open_files_stays(tmp_path: Path) -> None:
    text = HEADERS["git"].replace("private/", "public/")
    request = replace(past(Message(Role.ASSISTANT, text)), supplied=(Supplied("s", "a change", text),))
    bundle = run(pipeline.run(request, world(tmp_path).workspace()))
    assert repr(bundle.prompt).count("+k = 'CANARY'") == 2


ARGUMENTS = (
    *({"path": "private/b.py"}, {"files": [{"at": "/home/me/ws/private/b.py"}]}, {"uri": "file:///ws/private/b.py"}),
    *({"cmd": "cat private/b.py"}, {"cmd": 'head -n5 "./private/b.py" | sort'}, {"private/b.py": 1}),
)


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_the_result_of_a_call_that_names_a_restricted_file_is_withheld(arguments: dict[str, object]) -> None:
    privacy = Privacy.compile(SETTINGS, ("ws",))
    call = Message(
        Role.ASSISTANT, "I'll look.", (ToolCall("1", "read", json.dumps(arguments)), ToolCall("2", "ls", ""))
    )
    results = (Message(Role.TOOL, "k = 'CANARY'", tool_call_id="1"), Message(Role.TOOL, "x.py", tool_call_id="2"))
    kept, _ = mark_history((call, *results), privacy)
    assert [message.content for message in kept] == ["I'll look.", WITHHELD, "x.py"]
    assert may_not_leave((call, *results), privacy) == {1}
    other = replace(call, tool_calls=(ToolCall("1", "read", '{"path": "x.py"}'),))
    assert mark_history((call, other, results[0]), privacy)[0][2].content == "k = 'CANARY'"
    write = replace(
        call, tool_calls=(ToolCall("1", "write", json.dumps({**arguments, "text": "k = 'CANARY'\nj = 2"})),)
    )
    assert mark_history((write,), privacy)[0][0].content == WITHHELD
