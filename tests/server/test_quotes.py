"""Text that does not say where it is from, and quotes restricted files word for word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from gathering import World, run

from haversack import pipeline
from haversack.mark import mark_history
from haversack.policy.privacy import Privacy
from haversack.policy.quotes import Quotes
from haversack.types import Message, Request, Role, Settings, ToolCall

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
