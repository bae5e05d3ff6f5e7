"""No word of a restricted file leaves a whole session: whatever policy, folders, links and memories it has.

`test_leaks.py` has single questions; this has conversations on the session that the server runs. `make slow` runs both
with 10,000 cases.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gathering import FakeIndex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_lines import logged

from haversack.memory import MemoryStore
from haversack.policy.loading import PolicyFiles
from haversack.recorder import Recorder
from haversack.records import Records
from haversack.session import Session
from haversack.types import (
    ActiveDocument,
    Folder,
    HaversackError,
    Mention,
    MentionKind,
    Message,
    Position,
    Request,
    Role,
    Settings,
)
from haversack_index.client import WorkerEvent

CASES = int(os.environ.get("HAVERSACK_CASES", "20"))
REMOTE = "openai/gpt-4o"
FILES = ("ws/data/keys.py", "ws/src/use.py", "ws/README.md", "ws/notes.txt", "lib/core.py", "lib/data/rows.py")
# Which files each pattern means, in whichever folder.
PATTERNS = {
    "data/": {"ws/data/keys.py", "lib/data/rows.py"},
    "*.md": {"ws/README.md"},
    "src/**": {"ws/src/use.py"},
    "notes.*": {"ws/notes.txt"},
    "core.py": {"lib/core.py"},
    "**/keys.py": {"ws/data/keys.py"},
}
QUESTIONS = (
    *("how does {name} work?", "see @{path}", "@ws/src/alias.py", "what does this project do?", "see @data/"),
    *("@problems", "what did we say about {name}?", "hello"),
)
WHERE = ("user", "workspace", "request", "rule", "privileged")
SECRET = "AKIAIOSFODNN7" + "EXAMPLQ"  # the form of a cloud provider's key


@dataclass(frozen=True)
class Turn:
    question: str
    about: str
    named: tuple[str, ...]
    opened: str | None
    tightens: tuple[str, ...]  # patterns that the workspace's policy has from this turn on
    quotes: str | None  # a file whose text a tool brought into the history


@dataclass(frozen=True)
class Talk:
    layers: tuple[tuple[str, str], ...]  # where a pattern stands, and the pattern
    turns: tuple[Turn, ...]
    noted: tuple[str, ...]  # files that a memory quotes
    linked: str  # the file that `ws/src/alias.py` is a link to
    window: int | None
    sends_back: bool
    summarizes: bool


SOME = st.sampled_from(FILES)
PATTERN = st.sampled_from(sorted(PATTERNS))
TURN = st.builds(
    Turn,
    question=st.sampled_from(QUESTIONS),
    about=SOME,
    named=st.lists(SOME, max_size=2, unique=True).map(tuple),
    opened=st.none() | SOME,
    tightens=st.lists(PATTERN, max_size=1).map(tuple),
    quotes=st.none() | SOME,
)
TALK = st.builds(
    Talk,
    layers=st.lists(st.tuples(st.sampled_from(WHERE), PATTERN), min_size=1, max_size=3).map(tuple),
    turns=st.lists(TURN, min_size=1, max_size=3).map(tuple),
    noted=st.lists(SOME, max_size=1).map(tuple),
    linked=SOME,
    window=st.sampled_from([None, 4_000]),
    sends_back=st.booleans(),
    summarizes=st.booleans(),
)


@dataclass
class Summarizer:
    """The editor's model, of which nobody knows where it runs."""

    asked: list[str] = field(default_factory=list[str])
    name: str = "editor"
    remote: bool = True

    async def ask(self, text: str, most: int, seconds: float) -> str:
        del most, seconds
        self.asked.append(text)
        return "They spoke."


class Reader(FakeIndex):
    def why_skipped(self, path: str) -> str:
        return ""

    def close(self) -> None: ...


class Idle:
    """A worker that has nothing to do."""

    async def start(self) -> None: ...
    async def update(self, paths: Sequence[str] | None) -> None: ...
    async def rebuild(self) -> None: ...
    async def configure(self, settings: Settings) -> None: ...
    async def stop(self) -> None: ...


class Indexed:
    """Indexes in memory, of the files as they are when a folder is opened."""

    def open_reader(self, folder: Folder, settings: Settings) -> Reader:
        del settings
        own = {path.split("/", 1)[1]: text_of(path) for path in FILES if path.startswith(f"{folder.key}/")}
        return Reader(Path(folder.root), own)

    def make_worker(self, folder: Folder, settings: Settings, on_event: Callable[[WorkerEvent], None]) -> Idle:
        del folder, settings, on_event
        return Idle()

    async def watch(self, folder: Folder, settings: Settings, on_change: object, on_problem: object) -> None: ...


@pytest.mark.slow
@settings(max_examples=CASES, suppress_health_check=[HealthCheck.too_slow])
@given(TALK)
def test_no_word_of_a_restricted_file_leaves_a_session(talk: Talk) -> None:
    """Not in a prompt, row, problem or error for a remote model, a summarizer's text, a log, or a kept record."""
    with tempfile.TemporaryDirectory() as folder, logged() as lines:
        told = asyncio.run(_talk(Path(folder), talk))
        records = b"".join(each.read_bytes() for each in (Path(folder) / "records").rglob("*") if each.is_file())
    for said, restricted in told:
        for path in restricted:
            assert canary(path) not in said, path
    for path in _restricted(talk, len(talk.turns)):
        assert canary(path).encode() not in records
    everything = "".join(lines) + records.decode("utf-8", "replace")
    assert SECRET not in everything + "".join(said for said, _ in told)
    assert not any(canary(path) in "".join(lines) for path in _restricted(talk, 0))


def canary(path: str) -> str:
    return f"canary{FILES.index(path)}x"


def text_of(path: str) -> str:
    word, name = canary(path), f"compute_{FILES.index(path)}"
    if path.endswith(".py"):
        body = f'    key = "{SECRET}"\n    return "{word}"\n'
        return f'"""Doc of {word}."""\n\n\ndef {name}():\n    """Gives {word}."""\n{body}'
    return f"# About {word}\n\nIt tells how {name} works: {word}.\n"


def _restricted(talk: Talk, n_turns: int) -> set[str]:
    """After so many turns; 0 for what was restricted before the first."""
    patterns = [pattern for where, pattern in talk.layers if where != "request"]
    patterns += [pattern for where, pattern in talk.layers if where == "request" and n_turns]
    patterns += [pattern for turn in talk.turns[:n_turns] for pattern in turn.tightens]
    return set[str]().union(*(PATTERNS[pattern] for pattern in patterns))


def _policy(talk: Talk, where: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
    def patterns(*places: str) -> list[str]:
        return [pattern for place, pattern in talk.layers if place in places]

    made: dict[str, Any] = {"version": 1, "privacy": {"restrictedPaths": [*patterns(where), *more]}}
    if where == "workspace":
        local = [
            {"name": f"local {at}", "paths": [pattern], "localOnly": True, "model": "ollama/qwen2.5-coder:7b"}
            for at, pattern in enumerate(patterns("rule"))
        ]
        made |= {"rules": local, "documents": {"privilegedPaths": patterns("privileged")}}
    return made


async def _talk(folder: Path, talk: Talk) -> list[tuple[str, set[str]]]:
    """What each turn said to a remote model, and what was restricted by then."""
    for path in FILES:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(path))
    os.symlink(folder / talk.linked, folder / "ws/src/alias.py")
    (folder / "user.json").write_text(json.dumps(_policy(talk, "user")))
    policy = folder / "ws/.haversack/policy.json"
    policy.parent.mkdir()
    policy.write_text(json.dumps(_policy(talk, "workspace")))
    summarizer = Summarizer()
    session = Session(
        indexing=Indexed(),
        memory=MemoryStore(folder / "memories.db"),
        recorder=Recorder(Records(folder / "records")),
        policies=PolicyFiles(folder / "user.json"),
        cache_dir=folder / "cache",
    )
    told: list[tuple[str, set[str]]] = []
    async with session:
        for name in ("ws", "lib"):
            session.add_folder((folder / name).as_uri(), name)
        session.update_settings({"model": REMOTE, **({"contextWindow": talk.window} if talk.window else {})})
        session.conversations.editor = summarizer if talk.summarizes else None
        for path in talk.noted:
            noted = {"category": "Knowledge", "title": f"On compute_{FILES.index(path)}", "origins": (path,)}
            await session.memories.add("project", "ws", content=f"Mind {canary(path)}.", **noted)
        history: tuple[Message, ...] = ()
        more: tuple[str, ...] = ()
        for at, turn in enumerate(talk.turns, 1):
            more += turn.tightens
            policy.write_text(json.dumps(_policy(talk, "workspace", more)))
            said, history = await _turn(session, folder, talk, turn, history)
            told.append((said + "".join(summarizer.asked), _restricted(talk, at)))
            summarizer.asked.clear()
    return told


async def _turn(
    session: Session, folder: Path, talk: Talk, turn: Turn, history: tuple[Message, ...]
) -> tuple[str, tuple[Message, ...]]:
    if turn.opened:
        uri = (folder / turn.opened).as_uri()
        session.documents.open(uri, "python", f"{text_of(turn.opened)}# {canary(turn.opened)} typed\n")
    if turn.quotes:
        history += (
            Message(Role.USER, "What is in it? " + "Words. " * 300),
            Message(Role.ASSISTANT, text_of(turn.quotes), origins=(turn.quotes,)),
        )
    active = ActiveDocument((folder / turn.opened).as_uri(), Position(1, 0)) if turn.opened else None
    asked = turn.question.format(name=f"compute_{FILES.index(turn.about)}", path=turn.about)
    request = Request(
        asked,
        active=active,
        mentions=tuple(Mention(path, MentionKind.PATH) for path in turn.named),
        history=history,
        conversation="talk",
        policy=_policy(talk, "request"),
    )
    try:
        bundle = await session.context(request)
    except HaversackError as error:
        return f"{error.message} {error.remedy} {error.details}", history
    answer = (Message(Role.ASSISTANT, "So it is. " + "Words. " * 300),)
    sent = bundle.prompt.messages if talk.sends_back else (*history, Message(Role.USER, asked))
    later = tuple(message for message in sent if message.role is not Role.SYSTEM) + answer
    return "" if bundle.route.model.local else repr(bundle), later
