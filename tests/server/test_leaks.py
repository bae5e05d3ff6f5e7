"""No word of a restricted file reaches a remote model, whatever is asked, open, changed, remembered or quoted.

`make slow` runs it with 10,000 cases.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from gathering import World, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_lines import logged

from haversack import pipeline
from haversack.types import (
    ActiveDocument,
    Diagnostic,
    HaversackError,
    Mention,
    MentionKind,
    Message,
    Position,
    Range,
    Request,
    Role,
    Settings,
    Supplied,
    ToolCall,
)

CASES = int(os.environ.get("HAVERSACK_CASES", "200"))
REMOTE = "openai/gpt-4o"
PATHS = (
    *("data/keys.py", "src/use.py", "src/deep/a.py", "Private/b.py", "README.md", "notes.txt", "main.py"),
    *("pyproject.toml", "CODEOWNERS"),
)
# Which of the paths each pattern means, written down by hand.
PATTERNS = {
    "data/": {"data/keys.py"},
    "**/a.py": {"src/deep/a.py"},
    "*.md": {"README.md"},
    "private/": {"Private/b.py"},
    "notes.*": {"notes.txt"},
    "src/**": {"src/use.py", "src/deep/a.py"},
    "/main.py": {"main.py"},
    "CODEOWNERS": {"CODEOWNERS"},
    "*.toml": {"pyproject.toml"},
    "[": set(PATHS),
}
QUESTIONS = (
    *("how does {name} work?", "see @{path}", "why is there an error in {path}", "what changed? @diff", "review @diff"),
    *("who owns {path}?", "what does this project do?", "fix @problems", "how do I build and test it?", "@ws", "hi"),
)


@dataclass(frozen=True)
class Case:
    patterns: tuple[str, ...]
    files: tuple[str, ...]
    question: str
    about: str
    opened: tuple[str, ...]
    quoted: tuple[str, ...]
    named: tuple[str, ...]
    uses_git: bool
    insists: bool

    @property
    def restricted(self) -> set[str]:
        return set[str]().union(*(PATTERNS[pattern] for pattern in self.patterns))


FILES = st.sampled_from(PATHS)
SOME = st.lists(FILES, max_size=2, unique=True).map(tuple)
CASE = st.builds(
    Case,
    patterns=st.lists(st.sampled_from(sorted(PATTERNS)), min_size=1, max_size=3, unique=True).map(tuple),
    files=st.lists(FILES, min_size=2, max_size=6, unique=True).map(tuple),
    question=st.sampled_from(QUESTIONS),
    about=FILES,
    opened=SOME,
    quoted=SOME,
    named=SOME,
    uses_git=st.integers(0, 3).map(lambda n: n == 0),
    insists=st.booleans(),
)


@pytest.mark.slow
@settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])
@given(CASE)
def test_no_word_of_a_restricted_file_leaves(case: Case) -> None:
    """Not in the prompt, a block, a row, a problem, an error, a log record or a file that is kept."""
    with tempfile.TemporaryDirectory() as folder, logged() as lines:
        world = _world(Path(folder), case)
        answer, is_remote = _answer(world, case)
        kept = "".join(each.read_text("utf-8") for each in (Path(folder) / "cache").rglob("*.json"))
    for path in case.restricted:
        assert canary(path) not in "".join(lines) + kept
        assert not is_remote or canary(path) not in answer, path


def canary(path: str) -> str:
    return f"canary{PATHS.index(path)}x"


def name_of(path: str) -> str:
    return f"compute_{PATHS.index(path)}"


def text_of(path: str) -> str:
    word = canary(path)
    match path.rsplit(".", 1)[-1]:
        case "py":
            return f'"""{word}"""\nimport {word}\n\n\ndef {name_of(path)}():\n    return "{word}"\n'
        case "toml":
            return f'[project]\nname = "{word}"\ndependencies = ["django"]\n'
        case "CODEOWNERS":
            return f"* @{word}\n"
        case _:
            return f"# {word}\n\nIt tells how {name_of(path)} works: {word}.\n"


def _world(folder: Path, case: Case) -> World:
    world = World(folder, {"ws": {path: text_of(path) for path in case.files}}, cache_dir=folder / "cache")
    half = len(case.patterns) // 2
    world.settings = Settings(
        restricted_paths=case.patterns[:half], remote_blocked_paths=case.patterns[half:], model=REMOTE
    )
    if case.uses_git:
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
            subprocess.run(["git", *IDENTITY, *words], cwd=folder / "ws", check=True, capture_output=True)
        for path in case.files:
            world.write("ws", path, text_of(path) + f"# {canary(path)} changed\n")
    for path in case.opened:
        uri = world.open("ws", path, text_of(path) + f"# {canary(path)} typed\n", changed=((1, 2),))
        message = f"{canary(path)} is not defined"
        world.diagnostics += (Diagnostic(uri, Position(1, 0), Position(1, 3), 1, message),)
    return world


IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null")


def _answer(world: World, case: Case) -> tuple[str, bool]:
    """All that is said, and whether a remote model may see it."""
    active = None
    if case.opened:
        selection = Range(Position(0, 0), Position(2, 0)) if case.insists else None
        active = ActiveDocument(world.uri("ws", case.opened[0]), Position(1, 0), selection)
    history: list[Message] = []
    for number, path in enumerate(case.quoted):
        call = ToolCall(str(number), "read", f'{{"text": "{canary(path)}"}}')
        said = (f"ws/{path}",)
        history.append(Message(Role.ASSISTANT, f"It says {canary(path)}.", (call,), origins=said))
        history.append(Message(Role.TOOL, text_of(path), tool_call_id=str(number), origins=said))
    request = Request(
        case.question.format(name=name_of(case.about), path=case.about),
        active=active,
        mentions=tuple(Mention(path, MentionKind.PATH) for path in case.named),
        history=tuple(history),
        supplied=tuple(Supplied(path, "tool", text_of(path), path=path) for path in case.quoted),
        model=REMOTE if case.insists else None,
    )
    try:
        bundle = run(pipeline.run(request, world.workspace()))
    except HaversackError as error:
        return f"{error!r} {error.message} {error.remedy} {error.details}", True
    if bundle.route.model.local:
        return "", False
    return repr(bundle), True
