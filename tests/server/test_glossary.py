"""Questions in other languages get the words of code; English ones stay as they are."""

from __future__ import annotations

import re

import pytest

from haversack import glossary
from haversack.glossary import in_english


def english(text: str) -> dict[str, tuple[str, ...]]:
    return in_english(re.findall(r"[\w-]+", text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wie werden die Fehlermeldungen angezeigt?", "error message show display"),
        ("Wo wird entschieden, ob die Ausgabe farbig ist?", "decide output color"),
        ("wie kann ich eine Datei hochladen?", "file upload"),
        ("comment sont gérées les erreurs de connexion", "handle error connection"),
        ("¿Dónde está la configuración por defecto?", "config default"),
        ("开发服务器如何处理对静态资源的请求？", "dev server handle static asset request"),
        ("サーバーの設定を読み込む", "server config load read"),
    ],
)
def test_questions_are_put_into_the_words_of_code(text: str, words: str) -> None:
    """Function words are dropped, compounds come apart, order is kept."""
    assert [word for parts in english(text).values() for word in parts] == words.split()


@pytest.mark.parametrize(
    "text",
    [
        "Where is the default dev server port configured?",
        "fix the comment on line 3 of des.c, MIT licence",
        "why does `del x` fail in the die() of mode es",
        "rename la to le",
        "",
    ],
)
def test_english_questions_are_left_alone(text: str) -> None:
    """Single words that another language has as well show nothing."""
    assert english(text) == {}


def test_what_is_half_english_keeps_that_half_and_unknown_words_stay() -> None:
    """`assert` in `assert-Ausdrücken` is the word to search for; a name is nobody's to translate."""
    found = english("Wie werden assert-Ausdrücke im TerminalReporter behandelt")
    assert found["assert-Ausdrücke"] == ("assert", "expression")
    assert "TerminalReporter" not in found


def test_parts_of_runs_are_within_the_length_looked_for() -> None:
    """A longer one would never be found."""
    runs = glossary._glossary().runs  # pyright: ignore[reportPrivateUsage]
    assert max(map(len, runs)) <= glossary.LONGEST_PART
