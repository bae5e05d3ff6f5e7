"""Sealed conversations of every shape: opened, each gives what it gives in the clear, with all that was said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gathering import World, run
from sealed_talk import (
    FILES,
    KEY,
    LOCAL,
    REMOTE,
    OnWorld,
    answer,
    code_of,
    long_talk,
    open_all,
    refs,
    request,
    seal,
    seal_all,
    session_on,
    small,
)

from haversack import pipeline, sealing, turns
from haversack.conversation.shape import NO_RESULT, OPENING
from haversack.lsp.handlers import Handlers
from haversack.types import Bundle, Image, Message, Policy, Problem, Role, Settings, ToolCall

TOKEN = "ghp_" + "B7kQ2xWn9Lp4VtRd6MhJ8uGfEa1oZi5NcYs3"
MODELS = (
    "anthropic/claude-sonnet-4-5",
    "google/gemini-2.5-pro",
    "mistral/mistral-large-latest",
    REMOTE,
    LOCAL,
    "ollama/llama3.2",
)
CALL = (ToolCall("t1", "read_file", "{}"),)
SHAPES: dict[str, tuple[Message, ...]] = {
    "the assistant begins": (Message(Role.ASSISTANT, "welcome"), Message(Role.USER, "hi"), Message(Role.ASSISTANT, "")),
    "a result without its call": (Message(Role.TOOL, "found", tool_call_id="t0", name="grep"), Message(Role.USER, "a")),
    "a call without its result": (Message(Role.ASSISTANT, "looking", CALL), Message(Role.USER, "and?")),
    "words between a call and its result": (
        Message(Role.ASSISTANT, "looking", CALL),
        Message(Role.USER, "hurry"),
        Message(Role.TOOL, "found", tool_call_id="t1", name="read_file"),
    ),
    "a system message in the middle": (Message(Role.USER, "hi"), Message(Role.SYSTEM, "be short")),
    "pictures": (Message(Role.USER, "see", images=(Image("a.png", 700), Image("b.png", 900))),),
    "a summary of what is gone": (
        Message(Role.USER, "they spoke of budgets", summary_of=("m1", "m2"), id="s1"),
        Message(Role.USER, "go on", id="m3"),
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("sealed"), {"demo": dict(FILES)})


def settled(bundle: Bundle) -> tuple[Any, ...]:
    return bundle.prompt, bundle.blocks, bundle.route, bundle.version_hash, bundle.manifest.hash, set(bundle.problems)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape_gives_the_prompt_of_the_clear(world: World, shape: str, model: str) -> None:
    """For families that take anything and for those that are strict about who begins and which results there are."""
    history = SHAPES[shape]
    _, last = answer(world, request(seal_all(history), model))
    clear = run(pipeline.run(request(history, model), world.workspace()))
    assert settled(last) == settled(clear)


def test_strict_families_get_what_they_ask_for(world: World) -> None:
    """The user begins, and a missing result has the name of the tool, which was sealed."""
    history = (Message(Role.ASSISTANT, "looking", CALL), Message(Role.USER, "and?"))
    _, last = answer(world, request(seal_all(history), MODELS[0]))
    spoken = [message for message in last.prompt.messages if message.role is not Role.SYSTEM]
    assert (spoken[0].role, spoken[0].content) == (Role.USER, OPENING)
    assert [(each.content, each.name) for each in spoken if each.role is Role.TOOL] == [(NO_RESULT, "read_file")]


def test_a_summary_beside_its_messages_is_not_opened(world: World) -> None:
    """It says nothing that they do not; ids are in the clear."""
    history = (
        Message(Role.USER, "both in short", summary_of=("m1", "m2"), id="s1"),
        Message(Role.USER, "one", id="m1"),
        Message(Role.ASSISTANT, "two", id="m2"),
    )
    first, last = answer(world, request(seal_all(history)))
    assert refs(first) == ["message:1", "message:2"]
    assert settled(last) == settled(run(pipeline.run(request(history), world.workspace())))


# --- what is said of secrets and of what was left out -----------------------------------------------------------


def test_a_secret_in_an_opened_message_is_hidden_from_a_remote_model(world: World) -> None:
    """As in the clear, with its problem; a local model gets it."""
    history = (Message(Role.USER, f"my token is {TOKEN}"), Message(Role.ASSISTANT, "thanks"))
    first, last = answer(world, request(seal_all(history)))
    assert first.problems == ()
    assert TOKEN not in repr((last.prompt, last.problems, last.manifest))
    assert [problem.code for problem in last.problems] == ["secret_redacted"]
    assert settled(last) == settled(run(pipeline.run(request(history), world.workspace())))
    _, last = answer(world, request(seal_all(history), LOCAL))
    assert TOKEN in repr(last.prompt)


def told(bundle: Bundle) -> list[str]:
    """The places that problems name."""
    return sorted(each.message.split(" (")[0] for each in bundle.problems if each.code == "secret_redacted")


def test_problems_of_both_steps_are_told(world: World) -> None:
    """Secrets in the question, in a message in the clear and in an opened one: three problems of one code."""
    history = (
        Message(Role.USER, f"first {TOKEN}"),
        Message(Role.USER, f"second {TOKEN}"),
        Message(Role.ASSISTANT, "so?"),
    )
    asked = replace(request((history[0], seal(history[1], 1), history[2])), text=f"split_budget {TOKEN}")
    first, last = answer(world, asked)
    assert told(first) == ["A secret in message 1 of the conversation", "A secret in your question"]
    assert len(told(last)) == 3
    clear = run(pipeline.run(replace(asked, history=history), world.workspace()))
    assert set(last.problems) == set(clear.problems) == set(last.manifest.problems)


def test_problems_number_messages_as_they_were_sent(world: World) -> None:
    """Also where older ones were folded before any was opened."""
    talk = long_talk()
    talk[14] = replace(talk[14], content=f"{TOKEN} " + "word " * 500)
    _, last = answer(small(world), request(seal_all(talk)))
    assert len(last.prompt.messages) < 16
    assert told(last) == ["A secret in message 15 of the conversation"]


def test_what_was_said_before_the_pause_is_said_after_it(world: World) -> None:
    """Of the request itself, of documents kept from the reader, of restricted messages."""
    closed = replace(world, settings=Settings(restricted_paths=("data/",)), policy=Policy(privileged_paths=("legal/",)))
    history = (
        Message(Role.USER, "quote", origins=("demo/legal/a.md",)),
        Message(Role.ASSISTANT, "figures", origins=("demo/data/x.txt",)),
        Message(Role.USER, "go on"),
    )
    given = (Problem("request", "unknown_field", "A field."), Problem("request", "unknown_field", "Another field."))
    first, last = answer(closed, request(seal_all(history), problems=given))
    assert refs(first) == ["message:2"]
    codes = ["unknown_field", "unknown_field", "history_withheld", "history_restricted"]
    assert [problem.code for problem in first.problems] == codes
    assert sorted(problem.code for problem in last.problems) == sorted(codes)


# --- turns that end otherwise -----------------------------------------------------------------------------------


def test_an_abandoned_turn_is_let_go_of(world: World) -> None:
    """Whoever comes back hears so; one that was answered stays answered."""

    async def talk() -> list[object]:
        async with session_on(world) as session:
            first, second = [await session.context(request(seal_all(SHAPES["pictures"]))) for _ in range(2)]
            session.paused.abandon(first.turn)
            waiting = len(session.paused.turns)
            await session.resume(second.turn, open_all(second))
            session.paused.abandon(second.turn)
            session.paused.abandon("nobody")
            codes = [await code_of(session.resume(turn, ())) for turn in (first.turn, second.turn, "nobody")]
            return [waiting, *codes]

    assert run(talk()) == [1, "sealed_turn_abandoned", "sealed_turn_replayed", "sealed_unknown_turn"]


@pytest.mark.parametrize("change", ["settings", "trust", "folders", "policy"])
def test_a_turn_does_not_outlive_the_rules_it_was_asked_under(
    world: World,
    tmp_path: Path,
    change: str,
) -> None:
    """What was gathered may be restricted by now, so nothing is put together and the question has to be asked again."""

    async def talk() -> list[object]:
        async with session_on(world) as session:
            session.add_folder(tmp_path.as_uri(), "ws")
            first = await session.context(request(seal_all(SHAPES["pictures"])))
            match change:
                case "settings":
                    session.update_settings({"privacy": {"restrictedPaths": ["src/"]}})
                case "trust":
                    session.trusted = False
                case "folders":
                    session.remove_folder(tmp_path.as_uri())
                case _:
                    (tmp_path / ".haversack").mkdir()
                    (tmp_path / ".haversack" / "policy.json").write_text('{"version": 1, "localOnly": true}')
            codes = [await code_of(session.resume(first.turn, open_all(first))) for _ in range(2)]
            line = session.paused._line
            assert isinstance(line, OnWorld)
            return [*codes, line.resumed]

    assert run(talk()) == ["sealed_turn_outdated", "sealed_turn_replayed", 0]


def test_a_turn_is_let_go_of_by_a_timer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to come back for it."""
    monkeypatch.setattr(turns, "WAIT", 0.01)

    async def talk() -> int:
        async with session_on(world, asyncio.get_running_loop().time) as session:
            await session.context(request(seal_all(SHAPES["pictures"])))
            await asyncio.sleep(0.03)
            return len(session.paused.turns)

    assert run(talk()) == 0


def test_an_older_sealed_message_cannot_be_told_from_the_newest(world: World) -> None:
    """Put back whole in its place it is accepted: only who keeps the messages can know that there is a newer one."""
    talk: Sequence[Message] = (Message(Role.USER, "old words"), Message(Role.USER, "new words"))
    old, new = (sealing.seal(each, KEY, ref="message:0", session="s", sequence=0, count=len) for each in talk)
    assert old.sealed != new.sealed
    _, last = answer(world, request([old]))
    assert "old words" in repr(last.prompt)


class Connection:
    """As much of a connection as a shutdown needs."""

    state: object = None

    def install(self, *handlers: object) -> None: ...
    def cancel_all(self) -> None: ...


def test_a_shutdown_lets_go_of_every_turn(world: World) -> None:
    """As soon as it is asked for, not when the process ends."""

    async def talk() -> list[int]:
        async with session_on(world) as session:
            handlers = Handlers(Connection(), session, lambda _: None)  # type: ignore[arg-type]
            await session.context(request(seal_all(SHAPES["pictures"])))
            waiting = len(session.paused.turns)
            handlers.shutdown(None)
            return [waiting, len(session.paused.turns)]

    assert run(talk()) == [1, 0]
