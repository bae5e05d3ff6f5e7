"""The digest keeps what is looked for again, within its budget, in the words that were used."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from line_builders import WordCounter

from haversack.conversation.extract import clipped, digest
from haversack.tokens import counter
from haversack.types import Message, Role

WORDS = WordCounter()
TEXTS = st.text(st.sampled_from("abc XY_/.é漢0123 \n'?{}<|>👩‍👩‍👧"), max_size=300)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Role), TEXTS), max_size=12), st.integers(0, 200))
def test_a_digest_fits_and_is_deterministic(said: list[tuple[Role, str]], budget: int) -> None:
    """Never over its budget but for the heading, which says how many messages it stands for."""
    messages = [Message(role, text) for role, text in said]
    count = counter("o200k")
    text = digest(messages, budget, count)
    assert text == digest(messages, budget, count)
    assert count.count(text) <= max(budget, count.count(text.split("\n")[0]))
    assert text.startswith(f"[Summary of {len(messages)} earlier message")


def test_what_is_looked_for_again_comes_first() -> None:
    """Decisions, rules, errors, paths and numbers before small talk and before the noise of tools."""
    noise = "\n".join(f"2024-05-05 12:00:{at:02d} INFO worker {at} is alive" for at in range(60))
    messages = [
        Message(Role.USER, "Thanks, that was nice to hear from you about the thing we had before the other one today."),
        Message(Role.USER, "You must never write to /etc/haversack.conf from the tests."),
        Message(Role.TOOL, noise),
        Message(Role.TOOL, "ConnectionError: port 5433 refused"),
        Message(Role.ASSISTANT, "We decided to keep parse_frame in src/frames.py because of the 4096 limit."),
        Message(Role.USER, "Which database should migrations use?"),
    ]
    text = digest(messages, 62, WORDS)
    for fact in ("never write to /etc/haversack.conf", "port 5433", "parse_frame in src/frames.py", "Which database"):
        assert fact in text
    assert "INFO worker 30" not in text
    assert "nice to hear" not in text


def test_lines_stay_in_order_with_who_said_them() -> None:
    """A reader can tell the user's words from a tool's."""
    messages = [Message(Role.USER, "use a.py"), Message(Role.TOOL, "error in b.py"), Message(Role.USER, "then c.py")]
    assert digest(messages, 100, WORDS).split("\n")[1:] == ["user: use a.py", "tool: error in b.py", "user: then c.py"]


def test_a_digest_of_a_digest_quotes_its_lines_as_they_were() -> None:
    """No heading inside, the right speakers, and the count of all messages."""
    messages = [Message(Role.USER, "use a.py"), Message(Role.TOOL, "error in b.py")]
    first = Message(Role.USER, digest(messages, 100, WORDS))
    again = digest([first, Message(Role.USER, "then c.py")], 100, WORDS)
    assert again.startswith("[Summary of 3 earlier messages")
    assert again.split("\n")[1:] == ["user: use a.py", "tool: error in b.py", "user: then c.py"]


@settings(deadline=None)
@given(st.text(st.sampled_from("ae\u0301👩\u200d👧🏽\ufe0f🎲 "), max_size=30), st.integers(1, 30))
def test_no_cut_is_inside_a_letter(text: str, limit: int) -> None:
    """Combining accents, joined pictures and skin tones stay with what they belong to."""
    cut = clipped(text, limit)
    assert len(cut) <= max(limit, 1)
    if cut != text:
        assert text.startswith(cut[:-1])
        rest = text[len(cut[:-1]) :].lstrip()
        assert not rest or not unicodedata.combining(rest[0]) or not cut[:-1] or text[len(cut) - 1].isspace()
        # A joiner before a blank joins nothing.
        assert not cut[:-1].endswith("\u200d") or limit <= 2 or text[len(cut) - 1].isspace()


@pytest.mark.parametrize(
    ("better", "other"),
    [
        ("--no-boot-clock", "my-own-boot-clock"),  # an option
        ("relay::motor", "relay-motor"),  # a name in C++ or Rust
        ("48213", "12"),  # not to be guessed
        ("D:keys\\root", "D-keys-root"),  # a path with its drive
    ],
)
def test_what_cannot_be_guessed_is_worth_more(better: str, other: str) -> None:
    """Of two sentences alike, the digest keeps the one that names it, wherever it stands."""
    for first, second in ((better, other), (other, better)):
        messages = [Message(Role.USER, f"they read {first} there"), Message(Role.USER, f"they read {second} there")]
        kept = digest(messages, 17, WordCounter()).split("\n")[1:]
        assert kept == [f"user: they read {better} there"]
