"""Where a completion ends: the forms that models get wrong, and what holds for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack.completion.trimming import before_foreign_brackets, before_marks, before_overlap, is_repetition

MARKS = [
    "<|fim_prefix|>",
    "<|file_sep|>",
    "<|endoftext|>",
    "<|im_end|>",
    "<｜fim▁hole｜>",
    "<｜end▁of▁sentence｜>",
    "<fim_middle>",
    "<file_sep>",
    "<[fim-suffix]>",
    "<EOT>",
    "<PRE>",
    "<|code_middle|>",
    "<end_of_turn>",
]
CODE = st.text(alphabet="ab_1 ()[]{}\"'\n;,.", max_size=40)


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_any_model_ends_the_text(mark: str) -> None:
    """Whichever model it was made for, and whatever the settings say the model is."""
    assert before_marks(f"return x{mark}other.py") == "return x"


@pytest.mark.parametrize("cut", ["return x<|", "return x<|file_s", "return x<｜fim▁ho"])
def test_a_mark_cut_in_its_middle_is_no_text(cut: str) -> None:
    assert before_marks(cut) == "return x"


@pytest.mark.parametrize(
    "code", ["a <| b", "x < y || z > w", "a[PREFIX] = b[SUFFIX]", "List<String> a", "<p>a</p>", "f <$> x |> g"]
)
def test_code_is_not_taken_for_a_mark(code: str) -> None:
    assert before_marks(code) == code


def test_the_models_own_stops_count_however_they_look() -> None:
    assert before_marks("a</s>b\n\n\nc", ("\n\n\n", "</s>", "")) == "a"


@pytest.mark.parametrize(
    ("text", "before", "behind", "kept"),
    [
        ("a, b)", "f(", "", "a, b)"),  # open and nobody else closes it
        ("a, b);", "f(", ")", "a, b"),  # the editor has closed it
        ("\n  return 1;\n}\n\nvoid g() {", "int f() {", "\n}\n", "\n  return 1;\n"),
        ("x))", "f(", "", "x)"),  # one more than is open
        ("g(x)[0] + {1}", "", "", "g(x)[0] + {1}"),
        ("(]", "", "", "("),  # crossed
        ("x]", "f(", "", "x"),
        ("')' + ')')", "f(", "", "')' + ')')"),  # in strings they are letters
        ("x) // :)", "f(", "", "x) // :)"),
        ("x)", "f(a, '(', \"(\"", "", "x)"),
        ("it's a (b))", "", "", "it's a (b)"),  # an apostrophe hides nothing
    ],
)
def test_it_never_closes_more_than_is_open(text: str, before: str, behind: str, kept: str) -> None:
    assert before_foreign_brackets(text, before, behind, "javascript") == kept


def test_comments_are_those_of_the_language() -> None:
    assert before_foreign_brackets("1  # :)\n)", "", "", "python") == "1  # :)\n"
    assert before_foreign_brackets("#a)", "", "", "css") == "#a"


@given(CODE, CODE, CODE)
def test_what_is_cut_is_an_end(text: str, before: str, behind: str) -> None:
    """Nothing is ever added or changed, and cutting again changes nothing."""
    for cut in (
        before_marks(text),
        before_foreign_brackets(text, before, behind),
        before_overlap(text, behind),
    ):
        assert text.startswith(cut)
    once = before_foreign_brackets(text, before, behind)
    assert before_foreign_brackets(once, before, behind) == once


@given(st.text(alphabet="ab()[]{}", max_size=30))
def test_with_nothing_around_it_closes_only_its_own(text: str) -> None:
    kept = before_foreign_brackets(text, "", "")
    for place in range(len(kept)):
        head = kept[: place + 1]
        assert sum(map(head.count, ")]}")) <= sum(map(head.count, "([{"))


@pytest.mark.parametrize(
    ("text", "behind", "kept"),
    [
        ('"hello")', ")", '"hello"'),
        ("x)", ");\nmore", "x"),  # the end is only the beginning of the rest
        ("a + b", " + b", "a"),
        ("na", "name)", "na"),  # inside a word: no overlap
        ("bar", "r = 1", "bar"),
        ("x = 1", "", "x = 1"),
        ("x", "\nx", "x"),  # only the same line counts letter by letter
        ("1\n    y = 2\n    return y\n", "\n    return y\n", "1\n    y = 2"),
        ("1\n    return y", "\nreturn y\n", "1\n    return y"),  # another depth: another line
        ("{\n}\n", "\n}\n", "{\n}\n"),  # brackets are for brackets
    ],
)
def test_what_stands_behind_is_not_said_again(text: str, behind: str, kept: str) -> None:
    assert before_overlap(text, behind) == kept


@pytest.mark.parametrize(
    ("text", "before", "behind", "repeats"),
    [
        ("x = 1", "x = 1\n", "", True),
        ("= 1", "x = 1\n\n  x ", "", True),
        ("x = 1", "", "\n\nx = 1\n", True),
        ("x = 2", "x = 1\n", "\nx = 3", False),
        ("}", "  }\n", "\n}", False),
        ("\n  y", "x = 1\nx = 1", "", False),  # the user wrote it twice, the model only goes on
        ("", "", "", False),
    ],
)
def test_lines_next_to_it_are_not_offered_again(text: str, before: str, behind: str, repeats: bool) -> None:
    assert is_repetition(text, before, behind) is repeats
