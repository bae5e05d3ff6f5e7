"""Shortening a conversation on request acts or says why it cannot; the command keeps the form of the file."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from gathering import POOL, World

from haversack import pipeline
from haversack.__main__ import main
from haversack.compacting import Shortened, shorten
from haversack.conversations import Conversations
from haversack.mark import WITHHELD, mark_history
from haversack.policy.privacy import UNNAMED_ORIGIN, Privacy
from haversack.types import CompactTier, HaversackError, Message, Request, Role, Settings, Snapshot, ToolCall
from haversack.workspace import Workspace

SNAPSHOT = Snapshot((), {}, Settings(), 0.0)
TURNS = tuple(
    Message(role, f"{role.value} {at} says src/part_{at}.py must stay. " + "Some words about it. " * 30)
    for at in range(10)
    for role in (Role.USER, Role.ASSISTANT)
)


def done(messages: tuple[Message, ...], budget: int | None = None, settings: Settings = SNAPSHOT.settings) -> Shortened:
    snapshot = replace(SNAPSHOT, settings=settings)
    return asyncio.run(shorten(messages, Workspace(snapshot, {}, POOL), Conversations(), "openai/gpt-4o", budget))


def test_it_acts_though_there_is_room() -> None:
    """Without a budget to two thirds; with one, to that. The last messages are as they were."""
    for budget in (None, 1_200):
        result = done(TURNS, budget)
        assert result.history.tier is CompactTier.PLAIN_FALLBACK
        assert result.history.tokens_after <= result.target <= 0.66 * result.history.tokens_before
        assert result.history.messages[-4:] == TURNS[-4:]
        assert "summarized" in result.note


def test_it_says_why_it_does_nothing() -> None:
    """A budget that is large enough; messages that all have to stay; a budget too small for them is refused."""
    assert "fit into 100,000 as they are" in done(TURNS, 100_000).note
    short = done(TURNS[-4:])
    assert short.history.messages == TURNS[-4:]
    assert short.note.startswith("Nothing was shortened. The recent and pinned part")
    with pytest.raises(HaversackError, match="more than there are"):
        done(TURNS, 50)


def test_the_settings_of_history_change_the_result() -> None:
    """How many messages stay, and from which length on tool text becomes a marker."""
    kept = done(TURNS, 1_500, Settings(keep_recent=6)).history.messages
    assert kept[-6:] == TURNS[-6:]
    assert done(TURNS, 1_500).history.messages[-6:] != TURNS[-6:]
    call = Message(Role.ASSISTANT, "", (ToolCall("c1", "ls", "{}"),))
    talk = (TURNS[0], call, Message(Role.TOOL, "name.py " * 60, tool_call_id="c1"), *TURNS[-4:])
    budget = done(talk, 100_000).history.tokens_before - 20
    assert "result of ls left out" in done(talk, budget).history.messages[2].content
    wide = done(talk, budget, Settings(large_tool_result=1_000)).history.messages
    assert not any("result of ls left out" in message.content for message in wide)


def test_the_models_family_shapes_the_conversation(tmp_path: Path) -> None:
    """One begins with the user, another with anybody: on request, and in an answer."""
    talk = TURNS[1:4]
    for model, n_messages in (("openai/gpt-4o", 3), ("anthropic/claude-sonnet-4.5", 4)):
        asked = shorten(talk, Workspace(SNAPSHOT, {}, POOL), Conversations(), model, 100_000)
        assert len(asyncio.run(asked).history.messages) == n_messages
        request = Request("why?", model=model, history=talk)
        bundle = asyncio.run(pipeline.run(request, World(tmp_path, {"ws": {"a.py": "a\n"}}).workspace(request)))
        assert len(bundle.history.messages) == n_messages


def test_the_command_keeps_the_form_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A request stays a request; with --json comes what was done; what is no JSON is named."""
    file = tmp_path / "chat.json"
    messages = [{"role": message.role.value, "content": message.content} for message in TURNS]
    file.write_text(json.dumps({"model": "x", "system": "be brief", "messages": messages}), "utf-8")
    place = ["--workspace", str(tmp_path), "--cache-dir", str(tmp_path / "cache")]
    assert main(["compact", str(file), "--format", "anthropic", "--budget", "1500", *place]) == 0
    out, err = capsys.readouterr()
    written = json.loads(out)
    assert (written["model"], written["system"]) == ("x", [{"type": "text", "text": "be brief"}])
    assert written["messages"][-4:] == messages[-4:]
    assert "tokens" in err
    assert main(["compact", str(file), "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["tokensAfter"] < 2_000
    file.write_text("no", "utf-8")
    assert main(["compact", str(file), *place]) == 1
    assert "holds no JSON" in capsys.readouterr().err


@dataclass
class Elsewhere:
    """A model on another machine that is asked to summarize."""

    remote: bool = True
    name: str = "elsewhere"
    asked: list[str] = field(default_factory=list[str])

    async def ask(self, text: str, most: int, seconds: float) -> str:
        del most, seconds
        self.asked.append(text)
        return "what was said of CANARY" if "PRIVATE" in text else "what was said, in short"


@pytest.mark.parametrize("origin", ["ws/alias/b.py", "copy.py", "ws/private/b.py"])
def test_no_model_elsewhere_summarizes_a_restricted_file_under_another_name(tmp_path: Path, origin: str) -> None:
    text = "k = 'CANARY'\n"
    world = World(tmp_path, {"ws": {"private/b.py": text, "copy.py": text}})
    world.settings = Settings(restricted_paths=("private/",))
    os.symlink("private", tmp_path / "ws/alias")
    port = Elsewhere()
    talk = (*TURNS[:3], replace(TURNS[3], content=text + TURNS[3].content, origins=(origin,)), *TURNS[4:])
    conversations = Conversations(lambda settings, editor: port)
    asyncio.run(shorten(talk, world.workspace(), conversations, "openai/gpt-4o", 900))
    assert port.asked
    assert "CANARY" not in repr(port.asked)


def test_a_digest_of_restricted_text_stays_restricted(tmp_path: Path) -> None:
    """Also where the digest has no path to say why: it came from a result, and the call is gone."""
    world = World(tmp_path, {"ws": {"private/b.py": "k = 1\n"}}, settings=Settings(restricted_paths=("private/",)))
    call = Message(Role.ASSISTANT, "", (ToolCall("c", "read", '{"path": "private/b.py"}'),))
    talk = (TURNS[0], call, Message(Role.TOOL, "src/CANARY.py says so. " * 9, tool_call_id="c"), *TURNS[1:])
    result = asyncio.run(shorten(talk, world.workspace(), Conversations(), "openai/gpt-4o", 900))
    (first, *_) = result.history.summaries
    assert first.message.origins == (UNNAMED_ORIGIN,)
    assert mark_history((first.message,), Privacy.compile(world.settings))[0][0].content == WITHHELD
    world.settings = replace(world.settings, context_window=3_000)
    request = Request("and now?", history=talk, model="ollama/qwen2.5-coder:7b")
    bundle = asyncio.run(pipeline.run(request, world.workspace()))
    assert bundle.route.model.local
    assert bundle.history.summaries[0].message.origins == (UNNAMED_ORIGIN,)
    free = asyncio.run(shorten(TURNS, world.workspace(), Conversations(), "openai/gpt-4o", 900))
    assert all(not each.message.origins for each in free.history.summaries)


def test_a_summary_of_what_is_restricted_since_is_not_used_for_a_remote_model(tmp_path: Path) -> None:
    """The rule came after a model had read the message: its words are known, and not sent on."""
    world = World(tmp_path, {"ws": {"later/b.py": "k = 1\n"}}, settings=Settings(context_window=3_000))
    talk = tuple(
        replace(each, content=f"PRIVATE {each.content}", origins=("ws/later/b.py",)) if at == 1 else each
        for at, each in enumerate(TURNS)
    )
    port = Elsewhere()
    conversations = Conversations(lambda settings, editor: port)
    request = Request("and now?", history=talk, model="openai/gpt-4o", conversation="c")
    services = pipeline.Services(conversations=conversations)

    def answered() -> str:
        bundle = asyncio.run(pipeline.run(request, world.workspace(), services))
        conversations.remember(request, world.snapshot(), bundle)
        assert not bundle.route.model.local
        return repr(bundle.prompt)

    assert "said of CANARY" in answered()
    world.settings = replace(world.settings, restricted_paths=("later/",))
    told = answered()
    assert "CANARY" not in told
    assert "PRIVATE" not in told
