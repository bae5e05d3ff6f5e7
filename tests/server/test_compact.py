"""Compaction fits its room, keeps what must stay, and never grows a conversation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_builders import WordCounter

from haversack.compact import CompactConfig, Held, Written, compact
from haversack.conversation.exchanges import exchanges, turns, untouchable
from haversack.conversation.shape import shaped
from haversack.templates.chat import message_tokens
from haversack.types import Batch, CompactTier, HaversackError, History, Message, Role, Room, ToolCall, WindowState

COUNTER = WordCounter()
KEEP = CompactConfig().keep_recent


def room(limit: int) -> Room:
    return Room(limit, int(0.89 * limit), int(0.65 * limit))


def said(role: Role, n_words: int, tag: str = "word", **changes: Any) -> Message:
    return Message(role, " ".join(f"{tag}{at}" for at in range(n_words)), **changes)  # type: ignore[arg-type]


def cost(messages: tuple[Message, ...]) -> int:
    return sum(message_tokens(message, COUNTER) for message in messages)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of a user and an assistant, now and then with one to three tool calls answered in any order."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(0, 8))):
        pinned = draw(st.integers(0, 6)) == 0
        messages.append(said(Role.USER, draw(st.integers(0, 60)), f"u{turn}-", pinned=pinned, id=f"m{len(messages)}"))
        calls = tuple(
            ToolCall(f"t{turn}.{at}", "read", "{}" if draw(st.booleans()) else '{"a": "' + "x " * 120 + '"}')
            for at in range(draw(st.integers(0, 3)))
        )
        if calls:
            messages.append(said(Role.ASSISTANT, draw(st.integers(0, 9)), "calling", tool_calls=calls))
            for call in draw(st.permutations(calls)):
                messages.append(said(Role.TOOL, draw(st.sampled_from((1, 20, 200))), "res", tool_call_id=call.id))
        messages.append(said(Role.ASSISTANT, draw(st.integers(0, 60)), f"a{turn}-", id=f"m{len(messages)}"))
    return tuple(messages)


def answered(history: tuple[Message, ...], limit: int, words: int, fail: bool = False) -> History:
    """Compaction with a model that writes summaries of so many words, asked as the pipeline asks it."""
    held = Held(model=True)
    for _ in range(3):
        result = compact(history, room(limit), COUNTER, held=held)
        if not result.wanted:
            return result
        new = {each.key: Written("point " * words, "model") for each in result.wanted}
        keys = frozenset(new)
        held = replace(held, failed=held.failed | keys) if fail else replace(held, written={**held.written, **new})
    raise AssertionError("asked the model in every round")


def attempt(history: tuple[Message, ...], limit: int, words: int | None) -> History | None:
    try:
        if words is None:
            return compact(history, room(limit), COUNTER)
        return answered(history, limit, words, fail=words == 0)
    except HaversackError as error:
        return None if error.code == "context_window_exceeded" else History((), CompactTier.NONE, -1, -1)


@settings(max_examples=150, deadline=None)
@given(histories(), st.integers(0, 600), st.sampled_from((None, 0, 5, 50, 2_000)))
def test_the_result_fits_and_keeps_what_must_stay(history: tuple[Message, ...], limit: int, words: int | None) -> None:
    """Within the limit, not larger than before; recent and pinned messages equal, calls with their results.

    With no model, with one that fails, and with summaries of any length.
    """
    result = attempt(history, limit, words)
    if result is None:
        return
    assert result.tokens_after == cost(result.messages) <= min(limit, result.tokens_before)
    assert result.tokens_before == cost(history)
    fixed = untouchable(history, KEEP)
    kept = [message for at, message in enumerate(history) if at in fixed]
    assert [message for message in result.messages if message in kept] == kept
    assert result.messages[-KEEP:] == history[-KEEP:]
    calls = [call.id for message in result.messages for call in message.tool_calls]
    answers = [message.tool_call_id for message in result.messages if message.role is Role.TOOL]
    assert sorted(calls) == sorted(answers)
    assert (result.tier is CompactTier.NONE) == (cost(history) <= limit)
    assert attempt(history, limit, words) == result


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(0, 600))
def test_compacting_again_changes_nothing(history: tuple[Message, ...], limit: int) -> None:
    """The result is stable, so a client that sends it back keeps its prompt cache; no loop is possible."""
    result = attempt(history, limit, None)
    if result is not None:
        assert compact(result.messages, room(limit), COUNTER).messages == result.messages


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(50, 600))
def test_every_message_is_accounted_for(history: tuple[Message, ...], limit: int) -> None:
    """A message is in the result, or a summary names it as a source; no message has two of them."""
    result = attempt(history, limit, None)
    if result is None or result.tier is CompactTier.NONE:
        return
    sources = [at for summary in result.summaries for at in summary.sources]
    assert len(sources) == len(set(sources)) == len(history) - len(result.messages) + len(result.summaries)
    for summary in result.summaries:
        assert summary.ids == tuple(history[at].id for at in summary.sources if history[at].id)
        assert summary.message.summary_of == summary.ids


def test_a_refusal_names_the_largest_message_and_by_how_much() -> None:
    """Recent messages over the limit: the refusal says what is missing, and which message takes most."""
    history = (
        said(Role.USER, 500, id="big"),
        *(said(Role.ASSISTANT, 3), said(Role.USER, 300), said(Role.ASSISTANT, 3)),
    )
    with pytest.raises(HaversackError) as caught:
        compact(history, room(400), COUNTER)
    assert caught.value.details["largest_tokens"] == 504
    assert caught.value.details["largest_message"] == 0
    assert "number 1, big, user" in caught.value.message
    assert f"{cost(history) - 400:,} more" in caught.value.message


RECENT = tuple(said(Role.USER, 5, f"r{at}") for at in range(KEEP))


def test_large_tool_results_of_old_turns_become_markers() -> None:
    """The marker names tool, size and call; short arguments stay, long ones become valid JSON; user text stays."""
    arguments = json.dumps({"path": "a.py", "text": "x " * 250})
    call = Message(Role.ASSISTANT, "", (ToolCall("c1", "write_file", arguments),))
    answer = said(Role.TOOL, 300, tool_call_id="c1")
    result = compact((said(Role.USER, 10), call, answer, *RECENT), room(150), COUNTER)
    assert result.tier is CompactTier.TOOL_STRIP
    content = result.messages[2].content
    assert "write_file" in content
    assert f"{len(answer.content):,} characters" in content
    assert "c1" in content
    kept = json.loads(result.messages[1].tool_calls[0].arguments)
    assert kept["path"] == "a.py"
    assert "502 characters" in kept["text"]
    assert result.messages[1].tool_calls[0].id == "c1"
    assert result.messages[0] == said(Role.USER, 10)
    assert result.messages[-KEEP:] == RECENT


@pytest.mark.parametrize(
    "arguments", ["not json " * 60, json.dumps(["x " * 300]), json.dumps({str(n): "y" * 9 for n in range(90)})]
)
def test_arguments_of_any_form_stay_json(arguments: str) -> None:
    """Text that is no object, or an object of many values, becomes a small one."""
    call = Message(Role.ASSISTANT, "", (ToolCall("c1", "run", arguments),))
    answer = Message(Role.TOOL, "ok", tool_call_id="c1")
    history = (said(Role.USER, 900), call, answer, *(replace(message) for message in RECENT))
    result = compact(history, Room(cost(history) - 1, 0, 0), COUNTER)
    assert result.tier is CompactTier.TOOL_STRIP
    for message in result.messages:
        for each in message.tool_calls:
            json.loads(each.arguments)
            assert len(each.arguments) <= len(arguments)


def test_old_context_becomes_a_marker_and_its_question_stays() -> None:
    """A message sent back as it was sent, with its blocks: they are gathered anew, the question is not."""
    block = "### a.py, lines 1-2 (code)\n````python\n## Question\n\n```\nx\n````\n\n"
    message = Message(Role.USER, f"## Context: 1 block\n\n{block}## Question\n\nwhy so slow?")
    filler = said(Role.ASSISTANT, 40)
    result = compact((message, filler, *RECENT), room(cost((message, filler, *RECENT)) - 1), COUNTER)
    assert result.tier is CompactTier.TOOL_STRIP
    assert result.messages[0].content == "[context left out: 1 block, gathered anew when needed]\n\nwhy so slow?"


TURNS = tuple(said(role, 60, f"{role.value}-{at}-") for at in range(4) for role in (Role.USER, Role.ASSISTANT))


def test_the_digest_stands_where_the_messages_were_and_pinned_ones_stay() -> None:
    """Counts what it stands for; what was pinned stays as it was."""
    pinned = Message(Role.USER, "always use tabs", pinned=True)
    result = compact((pinned, *TURNS, *RECENT), room(180), COUNTER)
    assert result.tier is CompactTier.PLAIN_FALLBACK
    assert result.messages[0] == pinned
    n_folded = len(result.summaries[0].sources)
    assert result.messages[1].content.startswith(f"[Summary of {n_folded} earlier messages, quoted from them")
    assert result.summaries[0].by == "extract"


def test_digests_do_not_pile_up() -> None:
    """A digest whose messages are gone is folded line by line into the next, without its heading."""
    first = compact((*TURNS, *RECENT), room(180), COUNTER)
    again = compact((*first.messages, *TURNS, *RECENT), room(180), COUNTER)
    heads = [message for message in again.messages if "[Summary of" in message.content]
    assert len(heads) == 1
    assert heads[0].content.count("[Summary of") == 1
    total = int(heads[0].content.split()[2])
    assert total + len(again.messages) - 1 == 2 * len((*TURNS, *RECENT))


def test_a_summary_beside_its_sources_is_dropped() -> None:
    """A client that still holds the messages gets them summarized, never their summary."""
    sources = tuple(replace(message, id=f"m{at}") for at, message in enumerate(TURNS[:2]))
    summary = Message(Role.USER, "[Summary of 2 earlier messages]\nECHO", summary_of=("m0", "m1"))
    both = compact((summary, *sources, *RECENT), room(10_000), COUNTER)
    assert both.messages == (*sources, *RECENT)
    alone = compact((summary, *RECENT), room(10_000), COUNTER)
    assert alone.messages[0] == summary


def test_system_messages_stay_verbatim() -> None:
    """Rules given as system text are in the result after any number of compactions, once each."""
    rule = Message(Role.SYSTEM, "RULE-7")
    history = (rule, *(said(Role.USER, 50, f"w{at}-") for at in range(6)), *RECENT)
    once = compact(history, room(150), COUNTER)
    twice = compact((*once.messages, said(Role.USER, 50), said(Role.USER, 5)), room(150), COUNTER)
    assert [m.content for m in twice.messages].count("RULE-7") == 1


def test_batches_become_the_models_words() -> None:
    """Only as many as needed, oldest first, each in its place, with who wrote it."""
    result = answered((*TURNS, *RECENT), 500, words=10)
    assert result.tier is CompactTier.MULTI_CHUNK
    assert [summary.by for summary in result.summaries] == ["model"] * len(result.summaries)
    assert result.summaries[0].sources[0] == 0
    assert result.messages[0].content.endswith("point " * 10)


def test_batches_overlap_and_stay_the_same_as_the_conversation_grows() -> None:
    """A batch quotes the end of the one before; what was written for a full one serves every later turn."""

    def wanted(history: tuple[Message, ...], limit: int) -> tuple[Batch, ...]:
        return compact(history, room(limit), COUNTER, held=Held(model=True)).wanted

    long = tuple(said(role, 60, f"{role.value}{at}-") for at in range(12) for role in (Role.USER, Role.ASSISTANT))
    first, later = wanted((*long, *RECENT), 1_000), wanted((*long, *RECENT, *TURNS), 1_000)
    assert len(first) > 1
    assert [each.key for each in later[: len(first) - 1]] == [each.key for each in first[:-1]]
    assert "Said just before" in first[1].text
    assert "Said just before" not in first[0].text


def test_a_failed_batch_leads_to_the_half_and_then_to_the_digest() -> None:
    """Each tier is tried once: batches, the oldest half, then no model at all."""
    history = (*TURNS, *RECENT)
    first = compact(history, room(400), COUNTER, held=Held(model=True))
    assert first.tier is CompactTier.PLAIN_FALLBACK
    failed = frozenset(each.key for each in first.wanted)
    second = compact(history, room(400), COUNTER, held=Held(model=True, failed=failed))
    assert len(second.wanted) == 1
    half = {second.wanted[0].key: Written("short", "model")}
    third = compact(history, room(400), COUNTER, held=Held(model=True, failed=failed, written=half))
    assert third.tier is CompactTier.PARTIAL
    failed |= {second.wanted[0].key}
    last = compact(history, room(400), COUNTER, held=Held(model=True, failed=failed))
    assert (last.tier, last.wanted) == (CompactTier.PLAIN_FALLBACK, ())


def test_what_no_model_may_read_is_in_no_batch() -> None:
    """Its batch becomes a digest, the half is not asked for, and every summary says which files it quotes."""
    secret = replace(TURNS[0], content=TURNS[0].content + " CANARY", origins=("ws/secret.py",))
    history = (secret, *TURNS[1:], *RECENT)
    held = Held(model=True, barred=frozenset({0}))
    result = compact(history, room(400), COUNTER, held=held)
    assert result.wanted
    assert not any("CANARY" in each.text for each in result.wanted[1:])
    assert not any(TURNS[0].content in each.text for each in result.wanted)
    written = {each.key: Written("short", "model") for each in result.wanted}
    done = compact(history, room(400), COUNTER, held=replace(held, written=written))
    assert done.tier is CompactTier.MULTI_CHUNK
    assert (done.summaries[0].by, done.summaries[0].message.origins) == ("extract", ("ws/secret.py",))
    failed = frozenset(each.key for each in result.wanted)
    assert compact(history, room(400), COUNTER, held=replace(held, failed=failed)).wanted == ()


def test_a_batch_does_not_repeat_what_no_model_may_read_before_it() -> None:
    """The last message of the batch before is told along for understanding, unless it is kept from the model."""
    history = (*TURNS, *RECENT)
    free = compact(history, room(400), COUNTER, held=Held(model=True))
    told = next(
        at for at, each in enumerate(TURNS) if f"alone:\n{each.role.value}: {each.content}" in free.wanted[1].text
    )
    barred = compact(history, room(400), COUNTER, held=Held(model=True, barred=frozenset({told})))
    assert barred.wanted
    assert not any(TURNS[told].content in each.text for each in barred.wanted)


def test_the_next_turn_keeps_the_summaries_of_the_last() -> None:
    """A client that sends the original messages again gets the same head, and a new digest only when it is full."""
    first = compact((*TURNS, *RECENT), room(450), COUNTER)
    held = Held(earlier=first.summaries, earlier_tier=first.tier)
    grown = (*TURNS, *RECENT, said(Role.ASSISTANT, 9), said(Role.USER, 9))
    second = compact(grown, room(450), COUNTER, held=held)
    assert second.messages[: len(first.messages)] == first.messages
    assert second.tier is first.tier
    other = (replace(TURNS[0], content="changed"), *grown[1:])
    assert compact(other, room(450), COUNTER, held=held).messages[0] != first.messages[0]


def test_near_the_limit_the_next_batches_are_named() -> None:
    """With a model, summaries can be written before they are needed; without one nothing is named."""
    history = (*TURNS, *RECENT)
    limit = int(cost(history) * 1.05)
    near = compact(history, room(limit), COUNTER, held=Held(model=True))
    assert (near.tier, near.state) == (CompactTier.NONE, WindowState.WARNING)
    assert near.ahead
    assert compact(history, room(limit), COUNTER).ahead == ()
    assert compact(history, room(2 * limit), COUNTER, held=Held(model=True)).ahead == ()


def test_parallel_calls_and_their_results_are_one_exchange() -> None:
    """Results in any order belong to the message that called; a turn has whole exchanges."""
    messages = (
        Message(Role.USER, "go"),
        Message(Role.ASSISTANT, "", (ToolCall("2", "a", "{}"), ToolCall("3", "b", "{}"))),
        Message(Role.TOOL, "x", tool_call_id="3"),
        Message(Role.TOOL, "y", tool_call_id="2"),
        Message(Role.USER, "thanks"),
    )
    assert exchanges(messages) == ((0,), (1, 2, 3), (4,))
    assert turns(messages, frozenset()) == ((0, 1, 2, 3), (4,))


def test_a_call_is_untouchable_when_its_result_is_recent() -> None:
    """The recent result would make no sense beside a call whose arguments were taken out."""
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "read", "{}"),))
    recent = (Message(Role.TOOL, "x", tool_call_id="1"), *(said(Role.USER, 1) for _ in range(KEEP - 1)))
    assert untouchable((said(Role.USER, 1), call, *recent), KEEP) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("first", range(8))
def test_a_history_cut_anywhere_has_no_orphan(first: int) -> None:
    """Whatever a client cut off: every result has its call before it and every call its results, no text lost."""
    calls = (ToolCall("t2", "a", "{}"), ToolCall("t3", "b", "{}"))
    whole = (
        Message(Role.SYSTEM, "rules"),
        Message(Role.USER, "go"),
        Message(Role.ASSISTANT, "", (ToolCall("t1", "a", "{}"),)),
        Message(Role.TOOL, "one", tool_call_id="t1"),
        Message(Role.ASSISTANT, "", calls),
        Message(Role.TOOL, "three", tool_call_id="t3"),
        Message(Role.TOOL, "two", tool_call_id="t2"),
        Message(Role.USER, "KEEP ME"),
    )
    for part in (whole[first:], whole[:first]):
        messages = shaped(part, "claude-5").messages
        open_calls: set[str] = set()
        for message in messages:
            if message.role is Role.TOOL:
                open_calls.remove(message.tool_call_id)
            else:
                assert not open_calls
            open_calls.update(call.id for call in message.tool_calls)
        assert not open_calls
        for message in part:
            assert any(message.content in each.content for each in messages)


@pytest.mark.parametrize(
    ("family", "roles"),
    [
        ("claude-4.5", [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]),
        ("gemini-2.5", [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]),
        ("gpt-4o", [Role.ASSISTANT, Role.SYSTEM, Role.USER]),
        ("qwen2.5-coder", [Role.SYSTEM, Role.ASSISTANT, Role.USER]),
        ("never-heard-of", [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]),
    ],
)
def test_each_family_gets_the_first_messages_it_takes(family: str, roles: list[Role]) -> None:
    """System text in front, the user first: where the provider demands it, and nowhere else."""
    history = (Message(Role.ASSISTANT, "hello"), Message(Role.SYSTEM, "rules"), Message(Role.USER, "hi"))
    assert [message.role for message in shaped(history, family).messages] == roles


def test_each_message_is_counted_once() -> None:
    """A long conversation costs few counts a message, not one for every step that asks for the whole."""

    class Counting:
        calls = 0

        def count(self, text: str) -> int:
            self.calls += 1
            return len(text)

    counter = Counting()
    compact([Message(Role.USER, f"message {number}") for number in range(2_000)], room(20_000), counter)
    assert counter.calls < 2_100


def test_a_conversation_of_nothing_is_no_bug_where_there_is_no_room() -> None:
    """What else must be in may leave less than nothing; the error counts what is missing."""
    with pytest.raises(HaversackError) as caught:
        compact((), Room(-7, -7, 0), WordCounter())
    assert (caught.value.code, caught.value.details["needed"]) == ("context_window_exceeded", 7)
