"""A pasted trace points at definitions: by path, line and function, across machines and versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from gathering import World, run

from haversack.gatherers import symbols
from haversack.gatherers.trace import Frame, frames

PYTHON = """Traceback (most recent call last):
  File "/home/me/venv/lib/python3.12/site-packages/app/main.py", line 2, in run
    step()
  File "/home/me/venv/lib/python3.12/site-packages/app/work.py", line 40, in step
ValueError: no"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PYTHON, [("work.py", 39, "step"), ("main.py", 1, "run")]),
        ("    at async Server.load (file:///app/src/server.ts:49:41)", [("server.ts", 48, "load")]),
        ("at com.x.Bar.handle(Bar.java:42)", [("Bar.java", 41, "handle")]),
        ("x/y.(*node).addRoute(0xc0, {0x1})\n\t/go/pkg/mod/y@v1/tree.go:246 +0x8", [("tree.go", 245, "addRoute")]),
        ("thread 'main' panicked at src/lib.rs:7:5:", [("lib.rs", 6, "")]),
        ("src/a.c:12:3: error: expected ';'", [("a.c", 11, "")]),
        ("it listens on localhost:8080 since 12:30", []),
    ],
)
def test_the_places_of_a_trace_are_read_innermost_first(text: str, found: list[tuple[str, int, str]]) -> None:
    """As Python, JavaScript, Java, Go, Rust and compilers write them."""
    assert [(each.path.rsplit("/", 1)[-1], each.line, each.name) for each in frames(text)] == found


def test_a_frame_keeps_the_folders_of_its_path() -> None:
    """They tell files of one name apart."""
    assert frames("C:\\app\\src\\a.py:3") == [Frame("/app/src/a.py", 2, "")]


def traced(tmp_path: Path, files: dict[str, str], text: str) -> list[tuple[str, str]]:
    world = World(tmp_path, {"ws": files})
    found, _ = run(symbols.gather(world.plan(text), world.workspace()))
    return [(each.heading[-1], each.why) for each in found if each.why.endswith("of the trace you pasted")]


def test_a_trace_of_another_machine_finds_its_functions_though_lines_have_moved(tmp_path: Path) -> None:
    """The end of the path and the function tell; the innermost frame comes first."""
    files = {
        "src/app/work.py": "def other():\n    return 1\n\n\ndef step():\n    raise ValueError\n",
        "src/app/main.py": "def run():\n    step()\n",
        "tests/work.py": "def step(): ...\n",
    }
    assert traced(tmp_path, files, f"why?\n{PYTHON}") == [
        ("step", "work.py:40 of the trace you pasted"),
        ("run", "main.py:2 of the trace you pasted"),
    ]


def test_a_library_file_that_is_called_as_one_of_ours_is_not_taken_for_it(tmp_path: Path) -> None:
    """Only the last part of the path agrees, and the function is not there."""
    files = {"src/app/runners.py": "def ours():\n    return 1\n"}
    text = 'File "/usr/lib/python3.12/asyncio/runners.py", line 1, in run'
    assert traced(tmp_path, files, text) == []


def test_what_does_not_exist_here_gives_nothing(tmp_path: Path) -> None:
    """A bundle's own names are nobody's here."""
    assert traced(tmp_path, {"a.py": "def f(): ...\n"}, "at g (/app/dist/dep-C6u.js:49192:41)") == []
