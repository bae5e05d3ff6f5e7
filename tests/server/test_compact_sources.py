"""What stands for what after compaction, and what no model is asked to summarize."""

from __future__ import annotations

from dataclasses import replace

from line_builders import WordCounter
from sealed_talk import seal

from haversack.compact import CompactConfig, Held, compact
from haversack.conversation.exchanges import key_of
from haversack.conversation.strip import stripped
from haversack.templates.chat import message_tokens
from haversack.types import CompactTier, Message, Role, Room, ToolCall

COUNTER = WordCounter()


def room(limit: int) -> Room:
    return Room(limit, int(0.89 * limit), int(0.65 * limit))


def said(role: Role, n_words: int, tag: str) -> Message:
    return Message(role, " ".join(f"{tag}{at}" for at in range(n_words)))


RECENT = tuple(said(Role.USER, 5, f"r{at}") for at in range(4))
TURNS = tuple(said(role, 60, f"{role.value}-{at}-") for at in range(4) for role in (Role.USER, Role.ASSISTANT))


def test_no_model_reads_what_a_model_or_a_digest_wrote() -> None:
    """A summary whose messages are gone is in no batch and not in the half: it would lose what it kept."""
    old = Message(
        Role.USER,
        "[Summary of 2 earlier messages]\nECHO src/echo.py must never fail, error 48213 " + "kept " * 60,
        summary_of=("x0", "x1"),
    )
    history = (old, *TURNS, *RECENT)
    first = compact(history, room(400), COUNTER, held=Held(model=True))
    failed = frozenset(each.key for each in first.wanted)
    half = compact(history, room(400), COUNTER, held=Held(model=True, failed=failed))
    assert first.wanted
    assert half.wanted
    assert not any("ECHO" in each.text for each in (*first.wanted, *half.wanted))


def test_a_digest_of_a_digest_names_the_first_messages() -> None:
    """So a client that still holds those can tell what each summary is about."""
    ids = tuple(replace(message, id=f"t{at}") for at, message in enumerate(TURNS))
    first = compact((*ids, *RECENT), room(180), COUNTER)
    again = compact((*first.messages, *ids[-2:], *RECENT), room(120), COUNTER)
    assert set(first.summaries[0].message.summary_of) <= set(again.summaries[0].message.summary_of)


def test_sources_are_places_in_the_history_as_given() -> None:
    """Also where a message was put in front for the model's family, which stands nowhere in it."""
    history = (*TURNS[1:], *RECENT)
    result = compact(history, room(180), COUNTER, CompactConfig(family="claude-4.5"))
    sources = result.summaries[0].sources
    assert set(sources) == {at for at, message in enumerate(history) if message not in result.messages}


def test_earlier_summaries_give_way_to_what_must_stay() -> None:
    """A message that was summarized and is pinned since is given as it is."""
    first = compact((*TURNS, *RECENT), room(450), COUNTER)
    at = first.summaries[0].sources[0]
    pinned = tuple(replace(message, pinned=n == at) for n, message in enumerate(TURNS))
    held = Held(earlier=first.summaries, earlier_tier=first.tier)
    assert pinned[at] in compact((*pinned, *RECENT), room(450), COUNTER, held=held).messages


def test_a_digest_is_at_most_half_of_what_it_stands_for() -> None:
    """Where there is room for more, too: each fold is to make room for many turns."""
    history = (*TURNS, *RECENT)
    total = sum(message_tokens(message, COUNTER) for message in history)
    (summary,) = compact(history, Room(total - 1, 0, total - 1), COUNTER).summaries
    assert summary.tokens_after <= 0.5 * summary.tokens_before


def test_a_marker_pays_in_what_is_counted() -> None:
    """One long word costs less than the marker that would stand for it; the long result beside it goes."""
    calls = (ToolCall("c1", "dump", "{}"), ToolCall("c2", "read", "{}"))
    call = Message(Role.ASSISTANT, "", calls)
    word = Message(Role.TOOL, "x" * 500, tool_call_id="c1")
    text = Message(Role.TOOL, "word " * 300, tool_call_id="c2")
    history = (TURNS[0], call, word, text, *RECENT)
    result = compact(history, room(200), COUNTER)
    assert result.tier is CompactTier.TOOL_STRIP
    assert result.messages[2] == word
    assert "left out" in result.messages[3].content


def test_of_two_calls_only_the_one_that_gets_shorter_changes() -> None:
    """With a low limit too, what is shorter than its marker stays in its own words."""
    short, long = '{"path": "a.py"}', '{"text": "' + "x " * 200 + '"}'
    message = Message(Role.ASSISTANT, "", (ToolCall("c1", "read", short), ToolCall("c2", "write", long)))
    kept = stripped(message, "", 10).tool_calls
    assert kept[0].arguments == short
    assert len(kept[1].arguments) < len(long)
    result = Message(Role.TOOL, "all is well", tool_call_id="c1")
    assert stripped(result, "read", 10) is result


def test_what_a_tool_was_given_is_part_of_the_key() -> None:
    """A summary of one call never stands for another that reads the same but for its arguments."""
    one, other = (Message(Role.ASSISTANT, "", (ToolCall("c1", "read", f'{{"path": "{p}"}}'),)) for p in "ab")
    assert key_of([one], "batch") == key_of([replace(one)], "batch") != key_of([other], "batch")


def test_no_model_reads_a_sealed_message() -> None:
    """Nobody here can open it; its batch is no batch for a model."""
    history = (seal(TURNS[0], 0, COUNTER.count), *TURNS[1:], *RECENT)
    first = compact(history, room(400), COUNTER, held=Held(model=True))
    assert first.wanted
    assert not any(TURNS[1].content in each.text.rpartition("To summarize:")[2] for each in first.wanted)
