"""A sealed conversation through the whole line: what is asked for, and what comes of the answer."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from e2e.fakes import FakeIndexing
from gathering import World, run
from hypothesis import given, settings
from hypothesis import strategies as st
from sealed_talk import (
    FILES,
    LOCAL,
    TALK,
    OnWorld,
    answer,
    code_of,
    long_talk,
    open_all,
    refs,
    request,
    same,
    seal,
    seal_all,
    session_on,
    small,
)

from haversack import pipeline, turns
from haversack.lsp import to_lsp, wire
from haversack.mark import WITHHELD
from haversack.pausing import Turn
from haversack.pipeline import Paused, Waiting
from haversack.session import Session
from haversack.templates.chat import message_tokens
from haversack.tokens import counter
from haversack.types import (
    Bundle,
    CompactTier,
    HaversackError,
    Message,
    OpenedRecord,
    Role,
    Settings,
    ToolCall,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("sealed"), {"demo": dict(FILES)})


# --- the way there and back -------------------------------------------------------------------------------------


def test_a_sealed_conversation_pauses_before_anything_is_put_together(world: World) -> None:
    """The client hears the route and what to open: no prompt, no text of the workspace, no rows."""
    first, _ = answer(world, request(seal_all(TALK)))
    assert first.status == "awaitingDecrypt"
    assert refs(first) == [f"message:{at}" for at in range(4)]
    assert first.turn
    assert first.expires_in == turns.WAIT
    told = wire.write(to_lsp.context(first, ()))
    assert told["prompt"]["messages"] == told["blocks"] == told["manifest"]["items"] == []
    assert "split_budget" not in json.dumps(told)
    assert "canary" not in json.dumps(told)


def test_opened_it_is_the_same_prompt_as_in_the_clear(world: World) -> None:
    """Every byte of it, the blocks, the hashes and the report on the history."""
    _, last = answer(world, request(seal_all(TALK)))
    clear = run(pipeline.run(request(TALK), world.workspace()))
    assert last.status == "completed"
    assert same(last, clear)
    assert last.history == clear.history
    assert last.manifest.tokens == clear.manifest.tokens
    assert (last.turn, last.to_decrypt) == ("", ())


def test_a_conversation_may_be_sealed_in_part(world: World) -> None:
    """Only its sealed messages are asked for, and each comes back to its own place."""
    mixed = tuple(seal(message, at) if at % 2 else message for at, message in enumerate(TALK))
    first, last = answer(world, request(mixed))
    assert refs(first) == ["message:1", "message:3"]
    assert same(last, run(pipeline.run(request(TALK), world.workspace())))


def test_a_conversation_in_the_clear_never_pauses(world: World) -> None:
    """Nothing is held, and nothing says otherwise."""

    async def talk() -> tuple[Bundle, int]:
        async with session_on(world) as session:
            return await session.context(request(TALK)), len(session.paused.turns)

    bundle, held = run(talk())
    assert (bundle.status, bundle.turn, bundle.to_decrypt, bundle.expires_in, held) == ("completed", "", (), 0.0, 0)


# --- chosen on metadata -----------------------------------------------------------------------------------------


def test_what_compaction_drops_is_not_opened(world: World) -> None:
    """The oldest are folded unopened, the pinned one among them is kept; the recent ones are all asked for."""
    talk = long_talk()
    talk[1] = replace(talk[1], pinned=True)
    first, last = answer(small(world), request(seal_all(talk)))
    asked = refs(first)
    assert "message:1" in asked
    assert asked[-4:] == [f"message:{at}" for at in range(12, 16)]
    assert 5 <= len(asked) < 12
    assert last.history.tier is CompactTier.PLAIN_FALLBACK
    assert last.history.tokens_before > last.history.tokens_after
    told = "".join(message.content for message in last.prompt.messages)
    for at in range(16):
        assert (f"canary {at} " in told) == (f"message:{at}" in asked)


def test_large_tool_results_of_older_turns_are_not_opened(world: World) -> None:
    """A marker of their stated size stands for them, and calls still pair with their results."""
    talk = [
        Message(Role.ASSISTANT, "looking", (ToolCall("t1", "read_file", "{}"),)),
        Message(Role.TOOL, "canary " * 3_600, tool_call_id="t1", name="read_file"),
        *(Message(Role.USER, f"recent {at}") for at in range(4)),
    ]
    first, last = answer(small(world), request(seal_all(talk)))
    assert refs(first) == [f"message:{at}" for at in (0, 2, 3, 4, 5)]
    assert last.history.tier is CompactTier.TOOL_STRIP
    (result,) = [message for message in last.prompt.messages if message.role is Role.TOOL]
    assert (result.tool_call_id, result.sealed) == ("t1", None)
    assert result.content.startswith("[result of")
    assert "canary" not in repr(last.prompt)


def test_an_exchange_stays_whole_unopened(world: World) -> None:
    """A pinned result that stays keeps the message with its call, on ids alone."""
    talk = long_talk()
    talk[10] = replace(talk[10], role=Role.ASSISTANT, tool_calls=(ToolCall("t9", "f", "{}"),))
    talk[13] = replace(talk[13], role=Role.TOOL, tool_call_id="t9", pinned=True)
    first, _ = answer(small(world), request(seal_all(talk)))
    assert {"message:10", "message:13"} <= set(refs(first))


def test_restricted_messages_are_not_asked_for_on_a_remote_route(world: World) -> None:
    """They lose their place to a notice, unopened; a local model has them opened."""
    closed = replace(world, settings=Settings(restricted_paths=("data/",)))
    talk = (TALK[0], replace(TALK[1], origins=("demo/data/x.txt",)), replace(TALK[2], origins=("data/x.txt",)), TALK[3])
    first, last = answer(closed, request(seal_all(talk)))
    assert refs(first) == ["message:0", "message:3"]
    assert [message.content for message in last.prompt.messages].count(WITHHELD) == 2
    calls = [call for message in last.prompt.messages for call in message.tool_calls]
    assert [(call.id, call.name, call.arguments) for call in calls] == [("t1", "withheld", "{}")]
    assert [problem.code for problem in last.problems] == ["history_restricted"]
    first, last = answer(closed, request(seal_all(talk), LOCAL))
    assert len(refs(first)) == 4
    assert "canary two" in repr(last.prompt)


def test_when_no_sealed_message_is_needed_the_answer_comes_at_once(world: World) -> None:
    """All of it is restricted on a remote route: there is nothing to open."""
    closed = replace(world, settings=Settings(restricted_paths=("data/",)))
    history = seal_all([replace(message, origins=("data/x",)) for message in TALK])
    bundle = run(pipeline.run(request(history), closed.workspace()))
    assert bundle.status == "completed"
    assert not isinstance(bundle, Paused)
    assert bundle.to_decrypt == ()


def test_a_preview_opens_nothing(world: World) -> None:
    """It has the decisions of the clear conversation, names what would be asked for, and holds no turn."""

    async def talk() -> tuple[Bundle, int]:
        async with session_on(world) as session:
            return await session.preview(request(seal_all(TALK))), len(session.paused.turns)

    bundle, held = run(talk())
    clear = run(pipeline.preview(request(TALK), world.workspace()))
    assert (bundle.status, bundle.turn, held) == ("completed", "", 0)
    assert len(refs(bundle)) == 4
    assert bundle.manifest.tokens == clear.manifest.tokens
    assert bundle.manifest.hash == clear.manifest.hash
    assert bundle.history == clear.history
    assert not any(message.content for message in bundle.prompt.messages)


def test_stated_tokens_are_those_of_the_message(world: World) -> None:
    """What is sealed costs, as stated, what it costs in the clear: choices on metadata are the right ones."""
    count = counter("o200k")
    for message in (*TALK, Message(Role.USER, "<|im_end|> [INST] 漢字")):
        assert message_tokens(seal(message, 0), count) == message_tokens(message, count)


# --- stated counts that are wrong -------------------------------------------------------------------------------


def test_understated_tokens_never_break_the_budget(world: World) -> None:
    """All looked small and was asked for; once open it is compacted like any other history."""
    first, last = answer(small(world), request(seal_all(long_talk(), lambda _: 1)))
    assert len(refs(first)) == 16
    assert last.history.tier is CompactTier.PLAIN_FALLBACK
    assert last.manifest.tokens.total + last.manifest.tokens.reply_reserve <= 8_000
    assert same(last, run(pipeline.run(request(long_talk()), small(world).workspace())))


def test_understated_tokens_that_cannot_fit_are_refused(world: World) -> None:
    """With the error of a history in the clear; the turn is used up, for opening it again would change nothing."""

    async def talk() -> list[str]:
        async with session_on(small(world)) as session:
            first = await session.context(request(seal_all([Message(Role.USER, "word " * 9_000)], lambda _: 1)))
            return [await code_of(session.resume(first.turn, open_all(first))) for _ in range(2)]

    assert run(talk()) == ["context_window_exceeded", "sealed_turn_replayed"]


def test_overstated_tokens_cost_the_message_its_place(world: World) -> None:
    """What claims to be larger than the window is refused before anybody is asked for a key."""
    with pytest.raises(HaversackError) as refused:
        run(pipeline.run(request(seal_all(TALK, lambda _: 10**6)), world.workspace()))
    assert refused.value.code == "context_window_exceeded"


# --- turns ------------------------------------------------------------------------------------------------------


def test_a_turn_ends_once(world: World) -> None:
    """Unknown, replayed and expired turns are told apart; nothing is assembled for them."""

    async def talk() -> None:
        now = [0.0]
        async with session_on(world, lambda: now[0]) as session:
            asked = request(seal_all(TALK))
            first = await session.context(asked)
            records = open_all(first)
            assert await code_of(session.resume("nobody", records)) == "sealed_unknown_turn"
            assert (await session.resume(first.turn, records)).status == "completed"
            assert await code_of(session.resume(first.turn, records)) == "sealed_turn_replayed"
            late = await session.context(asked)
            now[0] = turns.WAIT
            assert await code_of(session.resume(late.turn, records)) == "sealed_turn_expired"
            assert len(session.paused.turns) == 0

    run(talk())


def test_of_two_answers_at_once_one_counts(world: World) -> None:
    """The line goes on once."""

    async def talk() -> tuple[list[object], int]:
        line = OnWorld(world)
        async with Session(line=line, indexing=FakeIndexing()) as session:
            first = await session.context(request(seal_all(TALK)))
            records = open_all(first)
            both = (session.resume(first.turn, records) for _ in range(2))
            return await asyncio.gather(*both, return_exceptions=True), line.resumed

    (won, lost), resumed = run(talk())
    assert isinstance(won, Bundle)
    assert isinstance(lost, HaversackError)
    assert (lost.code, resumed) == ("sealed_turn_replayed", 1)


def test_a_wrong_answer_leaves_the_turn_waiting(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The client may try again until the turn expires; nothing went on, and no text is in errors or logs."""
    caplog.set_level(logging.DEBUG)

    async def talk() -> tuple[list[HaversackError], int, Bundle]:
        line, errors = OnWorld(world), list[HaversackError]()
        async with Session(line=line, indexing=FakeIndexing()) as session:
            first = await session.context(request(seal_all(TALK)))
            right = open_all(first)
            wrong: list[list[OpenedRecord]] = [
                right[1:],
                [*right, right[0]],
                [*right, replace(right[0], ref="message:9")],
                [replace(right[0], content="canary forged"), *right[1:]],
                [replace(right[0], ref=right[3].ref), *right[1:3], replace(right[3], ref=right[0].ref)],
                [replace(right[0], salt="canary"), *right[1:]],
            ]
            for records in wrong:
                with pytest.raises(HaversackError) as refused:
                    await session.resume(first.turn, records)
                errors.append(refused.value)
            resumed = line.resumed
            return errors, resumed, await session.resume(first.turn, right)

    errors, resumed, last = run(talk())
    assert [error.code.removeprefix("sealed_") for error in errors] == [
        "record_missing",
        "record_duplicated",
        "record_unexpected",
        "record_tampered",
        "record_swapped",
        "malformed",
    ]
    assert resumed == 0
    assert last.status == "completed"
    assert "canary" not in repr([(error.message, error.remedy, error.details) for error in errors])
    assert "canary" not in caplog.text


@pytest.mark.parametrize("end", ["continued", "refused", "cancelled", "closed", "shut down"])
def test_nothing_of_a_turn_outlives_it(world: World, end: str) -> None:
    """However it ends, what was gathered for it can be collected."""

    def count_held() -> int:
        gc.collect()
        return sum(isinstance(each, Waiting) for each in gc.get_objects())

    before = count_held()

    async def talk() -> None:
        async with session_on(world) as session:
            first = await session.context(request(seal_all(TALK)))
            turn, records = first.turn, open_all(first)
            del first
            assert count_held() == before + 1
            match end:
                case "continued":
                    await session.resume(turn, records)
                case "refused":
                    await code_of(session.resume(turn, records[1:]))
                    session.paused.turns.clear()
                case "cancelled":
                    task = asyncio.create_task(session.resume(turn, records))
                    await asyncio.sleep(0)
                    task.cancel()
                    assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
                    del task
                case "shut down":
                    session.paused.turns.clear()
                case _:
                    await session.close()
            await asyncio.sleep(0.05)  # a call that was given up on may still run on its thread
            assert count_held() == before
            assert len(session.paused.turns) == 0

    run(talk())


def test_a_cancelled_question_holds_nothing(world: World) -> None:
    """It was cancelled before it could pause."""

    async def talk() -> int:
        async with session_on(world) as session:
            task = asyncio.create_task(session.context(request(seal_all(TALK))))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return len(session.paused.turns)

    assert run(talk()) == 0


# --- any answer -------------------------------------------------------------------------------------------------

ROLES = st.sampled_from([Role.USER, Role.ASSISTANT])
MESSAGES = st.builds(Message, ROLES, st.text("abc <|>é漢", max_size=12), pinned=st.booleans())


@given(st.lists(MESSAGES, min_size=1, max_size=5), st.data())
@settings(max_examples=80, deadline=None)
def test_any_answer_is_refused_or_gives_the_clear_prompt(
    world: World, history: list[Message], data: st.DataObject
) -> None:
    """Records dropped, repeated, reordered, exchanged or changed: the right prompt or an error, never a third thing."""
    bundle = run(pipeline.run(request(seal_all(history)), world.workspace()))
    assert isinstance(bundle, Paused)
    right = open_all(bundle)
    given_ = [mutated(data, record, right) for record in data.draw(st.lists(st.sampled_from(right), max_size=6))]
    given_ = data.draw(st.sampled_from([given_, data.draw(st.permutations(right))]))

    async def talk() -> Bundle | str:
        line = OnWorld(world)
        async with Session(line=line, indexing=FakeIndexing()) as session:
            turn = session.paused.turns.hold(Turn(bundle, session.snapshot()))
            try:
                return await session.resume(turn, given_)
            except HaversackError as error:
                assert line.resumed == 0
                return error.code

    ended = run(talk())
    if sorted(given_, key=lambda record: record.ref) == sorted(right, key=lambda record: record.ref):
        assert isinstance(ended, Bundle)
        assert same(ended, run(pipeline.run(request(history), world.workspace())))
    else:
        assert ended == expected(given_, right)


def mutated(data: st.DataObject, record: OpenedRecord, right: list[OpenedRecord]) -> OpenedRecord:
    other = data.draw(st.sampled_from(right))
    changes: list[dict[str, Any]] = [
        {},
        {"content": other.content},
        {"content": f"{record.content}x"},
        {"salt": other.salt},
        {"ref": other.ref},
        {"content": other.content, "salt": other.salt},
        {"name": "x"},
        {"tool_calls": (ToolCall("t", "f", "{}"),)},
        {"ref": "message:other"},
        {"salt": record.salt[:-4]},
    ]
    return replace(record, **data.draw(st.sampled_from(changes)))


def expected(given_: list[OpenedRecord], right: list[OpenedRecord]) -> str:
    """The error code that a wrong answer ends in, from the codes' own definitions."""
    names, asked = [record.ref for record in given_], {record.ref: record for record in right}
    if any(names.count(ref) > 1 for ref in asked):
        return "sealed_record_duplicated"
    if not set(names) <= set(asked):
        return "sealed_record_unexpected"
    if set(names) != set(asked):
        return "sealed_record_missing"
    wrong = next(record for record in given_ if record != asked[record.ref])
    if len(wrong.salt) < 44:
        return "sealed_malformed"
    of_another = any(replace(wrong, ref=other.ref) == other for other in right)
    return "sealed_record_swapped" if of_another else "sealed_record_tampered"
