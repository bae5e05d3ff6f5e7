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
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from log_lines import logged

from haversack import pipeline
from haversack.memory import MemoryStore
from haversack.policy.document import Kind, parse_value
from haversack.policy.layers import merge
from haversack.record_form import Question, make_record
from haversack.types import (
    ActiveDocument,
    Diagnostic,
    HaversackError,
    Mention,
    MentionKind,
    Message,
    Policy,
    Position,
    Range,
    Request,
    Role,
    Settings,
    Supplied,
    ToolCall,
)

CASES = int(os.environ.get("HAVERSACK_CASES", "150"))
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
LAYERS = ("settings", "settings blocked", "user", "workspace", "local rule")
# Where a database need not wait for a disk, if there is such a place.
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
KEY = "AKIA" + "Q3EGRN7TWY2LKZ5M"
PRIVATE = "canaryprivatex"
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
    layers: tuple[str, ...]  # where each pattern is written
    kept: tuple[str, ...]  # patterns of documents that no agent may have
    links: tuple[str, ...]
    copies: tuple[str, ...]
    remembered: tuple[str, ...]

    @property
    def restricted(self) -> set[str]:
        return set[str]().union(*(PATTERNS[pattern] for pattern in self.patterns))

    @property
    def withheld(self) -> set[str]:
        return set[str]().union(*(PATTERNS[pattern] for pattern in self.kept))

    def patterns_in(self, layer: str) -> list[str]:
        return [pattern for pattern, place in zip(self.patterns, self.layers, strict=False) if place == layer]


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
    layers=st.lists(st.sampled_from(LAYERS), min_size=3, max_size=3).map(tuple),
    kept=st.lists(st.sampled_from(sorted(set(PATTERNS) - {"["})), max_size=1).map(tuple),
    links=SOME,
    copies=SOME,
    remembered=SOME,
)


@pytest.mark.slow
@settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])
@given(CASE)
@example(
    Case(
        *(("*.md",), ("data/keys.py", "src/use.py"), "how does {name} work?", "data/keys.py", (), (), (), False, False),
        *(("settings",) * 3, ("**/a.py",), ("src/deep/a.py",), (), ()),
    )
)
@example(
    Case(
        *(("**/a.py",), ("data/keys.py",), "how does {name} work?", "data/keys.py", (), (), (), False, False),
        *(("settings",) * 3, ("**/a.py",), (), (), ("src/deep/a.py",)),
    )
)
def test_no_word_of_a_restricted_file_leaves(case: Case) -> None:
    """Not in the prompt, a block, a row, a problem, an error, a log record or a file that is kept."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder, logged() as lines:
        world = _world(Path(folder), case)
        answer, is_remote, recorded = _answer(world, case)
        kept = "".join(each.read_text("utf-8") for each in (Path(folder) / "cache").rglob("*.json"))
    written = "".join(lines) + kept + recorded
    for path in case.restricted | case.withheld:
        assert canary(path) not in written, path
    for path in case.withheld:
        assert canary(path) not in answer, path
    for word in (*map(canary, case.restricted), KEY, PRIVATE):
        assert not is_remote or word not in answer, word
        assert word not in written


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
    files = {path: text_of(path) for path in case.files}
    # A copy is known by the bytes of a restricted file; who may have a document is decided by names alone.
    copied = {f"copy_of_{PATHS.index(path)}.txt": files[path] for path in case.copies if path in files}
    open_copies = {name: text for name, text in copied.items() if not any(canary(p) in text for p in case.withheld)}
    ordinary = {"lib.py": f'def compute_it():\n    return "{KEY}"\n'}
    world = World(folder, {"ws": {**files, **open_copies}, "api": ordinary}, cache_dir=folder / "cache")
    world.settings = Settings(
        restricted_paths=tuple(case.patterns_in("settings")),
        remote_blocked_paths=tuple(case.patterns_in("settings blocked")),
        model=REMOTE,
    )
    world.policy = _policy(case, world.settings)
    world.memory = MemoryStore(folder / "memory.db")
    root = str((folder / "ws").resolve())
    for path in case.remembered:
        content = f"compute: it says {canary(path)}"
        world.memory.add("rule", canary(path), content, "project", now=1, project=root, origins=(f"ws/{path}",))
    world.memory.add("rule", PRIVATE, f"compute {PRIVATE}", "user", now=1, private=True)
    for path in case.links:
        (folder / "ws" / link_of(path)).symlink_to(folder / "ws" / path)
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


def _policy(case: Case, settings: Settings) -> Policy:
    """As policy files say it: the user's, and that of the workspace, which adds rules and documents kept back."""
    local = case.patterns_in("local rule")
    rule = {"name": "here", "paths": local, "localOnly": True, "model": "ollama/qwen2.5-coder:7b", "intent": "skill"}
    user = {"version": 1, "privacy": {"restrictedPaths": case.patterns_in("user")}}
    workspace = {
        "version": 1,
        "privacy": {"remote": {"blockedPaths": case.patterns_in("workspace")}},
        "documents": {"privilegedPaths": list(case.kept)},
        **({"rules": [rule]} if local else {}),
    }
    documents = [parse_value(user, Kind.USER, "user"), parse_value(workspace, Kind.WORKSPACE, "workspace")]
    return merge(documents, settings).policy


def link_of(path: str) -> str:
    return f"link_to_{PATHS.index(path)}.{path.rsplit('.', 1)[-1]}"


IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null")


def _answer(world: World, case: Case) -> tuple[str, bool, str]:
    """All that is said, whether a remote model may see it, and what is kept of it as a record."""
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
    for path in case.links:
        history.append(Message(Role.USER, f"{text_of(path)} I found this.", origins=(f"ws/{link_of(path)}",)))
    request = Request(
        case.question.format(name=name_of(case.about), path=case.about),
        active=active,
        mentions=tuple(Mention(path, MentionKind.PATH) for path in (*case.named, *map(link_of, case.links))),
        history=tuple(history),
        supplied=tuple(Supplied(path, "tool", text_of(path), path=path) for path in case.quoted),
        model=REMOTE if case.insists else None,
    )
    try:
        bundle = run(pipeline.run(request, world.workspace(request)))
    except HaversackError as error:
        return f"{error!r} {error.message} {error.remedy} {error.details}", True, ""
    record = make_record("r1", Question(request, world.snapshot(), bundle), b"k" * 32)
    return repr(bundle), not bundle.route.model.local, record.document
