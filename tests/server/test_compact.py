"""Compaction fits its share, keeps what must stay, and never grows a conversation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_builders import WordCounter

from haversack.compact import KEEP_RECENT, compact, exchanges, untouchable
from haversack.templates.chat import message_tokens
from haversack.types import CompactTier, HaversackError, History, Message, Role, ToolCall

COUNTER = WordCounter()


def said(role: Role, n_words: int, tag: str = "word", **changes: Any) -> Message:
    return Message(role, " ".join(f"{tag}{at}" for at in range(n_words)), **changes)  # type: ignore[arg-type]


def cost(messages: tuple[Message, ...]) -> int:
    return sum(message_tokens(message, COUNTER) for message in messages)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of a user and an assistant, now and then with one to three tool calls answered in any order."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(0, 8))):
        messages.append(said(Role.USER, draw(st.integers(0, 60)), f"u{turn}-", pinned=draw(st.integers(0, 6)) == 0))
        calls = tuple(
            ToolCall(f"t{turn}.{at}", "read", "{}" if draw(st.booleans()) else '{"a": "' + "x " * 120 + '"}')
            for at in range(draw(st.integers(0, 3)))
        )
        if calls:
            messages.append(said(Role.ASSISTANT, draw(st.integers(0, 9)), "calling", tool_calls=calls))
            for call in draw(st.permutations(calls)):
                messages.append(said(Role.TOOL, draw(st.sampled_from((1, 20, 200))), "res", tool_call_id=call.id))
        messages.append(said(Role.ASSISTANT, draw(st.integers(0, 60)), f"a{turn}-"))
    return tuple(messages)


def attempt(history: tuple[Message, ...], share: int) -> History | None:
    try:
        return compact(history, share, COUNTER)
    except HaversackError as error:
        return None if error.code == "context_window_exceeded" else History((), CompactTier.NONE, -1, -1)


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(0, 600))
def test_the_result_fits_and_keeps_what_must_stay(history: tuple[Message, ...], share: int) -> None:
    """Within the share, not larger than before; recent and pinned messages equal, calls with their results."""
    result = attempt(history, share)
    if result is None:
        return
    assert result.tokens_after == cost(result.messages) <= min(share, result.tokens_before)
    assert result.tokens_before == cost(history)
    fixed = untouchable(history)
    kept = [message for at, message in enumerate(history) if at in fixed]
    assert [message for message in result.messages if message in kept] == kept
    assert result.messages[-KEEP_RECENT:] == history[-KEEP_RECENT:]
    calls = [call.id for message in result.messages for call in message.tool_calls]
    answers = [message.tool_call_id for message in result.messages if message.role is Role.TOOL]
    assert sorted(calls) == sorted(answers)
    assert (result.tier is CompactTier.NONE) == (cost(history) <= share)


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(0, 600))
def test_compacting_again_changes_nothing(history: tuple[Message, ...], share: int) -> None:
    """The result is stable, so a client that sends it back keeps its prompt cache; no loop is possible."""
    result = attempt(history, share)
    if result is not None:
        assert compact(result.messages, share, COUNTER).messages == result.messages


def test_a_refusal_only_comes_when_what_must_stay_is_too_large() -> None:
    """One recent message over the share: the refusal says by how much and which message it is."""
    history = (said(Role.USER, 500), said(Role.ASSISTANT, 3), said(Role.USER, 300), said(Role.ASSISTANT, 3))
    with pytest.raises(HaversackError) as caught:
        compact(history, 400, COUNTER)
    assert caught.value.details["largest_tokens"] == 504
    assert f"{cost(history) - 400:,} more" in caught.value.message


def test_large_tool_results_of_old_turns_become_markers() -> None:
    """The marker names the tool and the size; user text and recent results stay."""
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "read_file", '{"path": "a.py"}'),))
    answer = said(Role.TOOL, 300, tool_call_id="1")
    recent = tuple(said(Role.USER, 5, f"r{at}") for at in range(KEEP_RECENT))
    result = compact((said(Role.USER, 10), call, answer, *recent), 120, COUNTER)
    assert result.tier is CompactTier.TOOL_STRIP
    assert result.messages[2].content == f"[result of read_file left out: {len(answer.content):,} characters]"
    assert result.messages[1].tool_calls == call.tool_calls
    assert result.messages[0] == said(Role.USER, 10)


def test_the_digest_quotes_how_user_messages_began() -> None:
    """Counts by role and first words; what was pinned stays as it was."""
    old = tuple(said(role, 60, f"{role.value}-{at}-") for at in range(4) for role in (Role.USER, Role.ASSISTANT))
    pinned = Message(Role.USER, "always use tabs", pinned=True)
    recent = tuple(said(Role.USER, 5, f"r{at}") for at in range(KEEP_RECENT))
    result = compact((pinned, *old, *recent), 120, COUNTER)
    assert result.tier is CompactTier.PLAIN_FALLBACK
    assert result.messages[0] == pinned
    assert result.messages[1].content.startswith("[Earlier messages left out: 4 from user, 4 from assistant.")
    assert "- user-0-0 user-0-1" in result.messages[1].content


def test_digests_do_not_pile_up() -> None:
    """A digest that is folded again gives its counts and lines to the new one, without quoting itself."""
    turns = tuple(said(role, 40, f"{role.value}-{at}-") for at in range(3) for role in (Role.USER, Role.ASSISTANT))
    recent = tuple(said(Role.USER, 5, f"r{at}") for at in range(KEEP_RECENT))
    first = compact((*turns, *recent), 130, COUNTER)
    again = compact((*first.messages, *turns, *recent), 130, COUNTER)
    digests = [m.content for m in again.messages if m.content.startswith("[Earlier messages")]
    assert len(digests) == 1
    assert digests[0].count("Earlier messages") == 1
    total = sum(int(n) for n in re.findall(r"(\d+) from", digests[0]))
    assert total + len(again.messages) - 1 == len((*turns, *recent, *turns, *recent))


def test_system_messages_stay_verbatim() -> None:
    """Rules given as system text are in the result after any number of compactions, once each."""
    rule = Message(Role.SYSTEM, "RULE-7")
    history = (rule, *(said(Role.USER, 50) for _ in range(6)), *(said(Role.USER, 5) for _ in range(KEEP_RECENT)))
    once = compact(history, 100, COUNTER)
    twice = compact((*once.messages, said(Role.USER, 50), said(Role.USER, 5)), 100, COUNTER)
    assert [m.content for m in twice.messages].count("RULE-7") == 1


def test_parallel_calls_and_their_results_are_one_exchange() -> None:
    """Results in any order belong to the message that called."""
    messages = (
        Message(Role.USER, "go"),
        Message(Role.ASSISTANT, "", (ToolCall("2", "a", "{}"), ToolCall("3", "b", "{}"))),
        Message(Role.TOOL, "x", tool_call_id="3"),
        Message(Role.TOOL, "y", tool_call_id="2"),
        Message(Role.USER, "thanks"),
    )
    assert exchanges(messages) == ((0,), (1, 2, 3), (4,))


def test_a_call_is_untouchable_when_its_result_is_recent() -> None:
    """The recent result would make no sense beside a call whose arguments were taken out."""
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "read", "{}"),))
    recent = (Message(Role.TOOL, "x", tool_call_id="1"), *(said(Role.USER, 1) for _ in range(KEEP_RECENT - 1)))
    assert untouchable((said(Role.USER, 1), call, *recent)) == {1, 2, 3, 4, 5}


def test_each_message_is_counted_once() -> None:
    """A long conversation costs one count a message, not one for every step that asks for the whole."""

    class Counting:
        calls = 0

        def count(self, text: str) -> int:
            self.calls += 1
            return len(text)

    counter = Counting()
    compact([Message(Role.USER, f"message {number}") for number in range(2_000)], 400, counter)
    assert counter.calls < 2_100
