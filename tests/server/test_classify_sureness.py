"""How sure a judgement of a message is, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from haversack.classify import classify
from haversack.types import Confidence, Intent, Mention, Request, Settings, Snapshot

SNAPSHOT = Snapshot((), {}, Settings(), 0.0)
HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW


@pytest.mark.parametrize(
    ("text", "known", "codebase", "confidence", "reason"),
    [
        ("why does @src/a.py fail", (), True, HIGH, "you mention src/a.py"),
        ("/review", (), True, HIGH, "the command /review"),
        ("what is wrong with src/a.py", (), True, HIGH, "it names src/a.py"),
        ("hello there", (), False, HIGH, "small talk"),
        ("???", (), False, HIGH, "the message has no words to search for"),
        ("what is a monad?", (), False, MEDIUM, "general knowledge, nothing of the project is named"),
        ("what is a monad?", ("monad",), True, MEDIUM, "a general question, but the project knows monad"),
        ("the grey horse runs", ("horse",), True, MEDIUM, "the project holds words of it"),
        ("the grey horse runs", (), True, LOW, "nothing says that it is not about the project"),
    ],
)
def test_a_judgement_says_how_sure_it_is_and_why(
    text: str, known: tuple[str, ...], codebase: bool, confidence: Confidence, reason: str
) -> None:
    """What is named is sure, what only sounds like code less so; where nothing is known, the project is read."""
    found = classify(Request(text), SNAPSHOT, lambda words: any(word in known for word in words))
    assert (found.codebase, found.confidence, found.reason) == (codebase, confidence, reason)


def test_the_word_of_the_request_is_as_sure_as_a_command() -> None:
    """A mention beside it is told first."""
    request = Request("the grey horse runs", intent=Intent.REVIEW)
    found = classify(request, SNAPSHOT, lambda words: False)
    assert (found.intent, found.confidence, found.reason) == (Intent.REVIEW, HIGH, "the command /review")
    found = classify(replace(request, mentions=(Mention("a.py"),)), SNAPSHOT, lambda words: False)
    assert (found.intent, found.confidence, found.reason) == (Intent.REVIEW, HIGH, "you mention a.py")
