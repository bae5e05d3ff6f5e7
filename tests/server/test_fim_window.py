"""What of a file goes into a prompt: shares, borders, ends of files, and a head that stays while somebody types."""

from __future__ import annotations

import itertools

import pytest

from haversack.fim.nouns import Cursor
from haversack.fim.window import STEPS, Window, window
from haversack.types import FileText
from haversack_index.text import split_lines


class Characters:
    """A token is a character; `seen` counts what was looked at."""

    def __init__(self) -> None:
        self.seen = 0

    def count(self, text: str) -> int:
        self.seen += len(text)
        return len(text)


def at(marked: str) -> Cursor:
    """The cursor at the bar."""
    before, after = marked.split("|")
    lines = tuple(split_lines(before + after))
    rows = split_lines(before)
    ended = not rows or rows[-1].endswith(("\n", "\r"))
    line = len(rows) if ended else len(rows) - 1
    return Cursor(
        "file:///m.py", FileText("f", "m.py", lines, "python", ""), line, 0 if ended else len(rows[-1]), "python"
    )


def cut(marked: str, prefix: int, suffix: int, most: int | None = None) -> Window:
    return window(at(marked), Characters(), prefix, suffix, most)


@pytest.mark.parametrize(
    ("marked", "prefix", "suffix"),
    [
        ("|", "", ""),
        ("a\n|", "a\n", ""),
        ("|x = 1", "", "x = 1"),
        ("x = 1|", "x = 1", ""),
        ("|\n", "", "\n"),
        ("na|me\n", "na", "me\n"),
        ("a|\r\nb\r\n", "a", "\r\nb\r\n"),
        ('msg = "\U0001f98a ok|"', 'msg = "\U0001f98a ok', '"'),
    ],
)
def test_ends_of_files_stay_as_they_are(marked: str, prefix: str, suffix: str) -> None:
    found = cut(marked, 50, 50)
    assert (found.prefix, found.suffix, found.cut_before, found.cut_after) == (prefix, suffix, False, False)


def test_lines_are_whole_and_within_the_shares() -> None:
    found = cut("aaaa\nbbbb\ncccc\nd|d\neeee\nffff\n", 12, 8)
    assert (found.prefix, found.suffix) == ("bbbb\ncccc\nd", "d\neeee\n")
    assert (found.first, found.last, found.prefix_tokens, found.suffix_tokens) == (1, 5, 11, 7)


def test_what_one_side_leaves_is_lent_to_the_other() -> None:
    assert cut("aaaa\nbbbb\ncccc\n|d\n", 10, 12).prefix == "aaaa\nbbbb\ncccc\n"
    assert cut("a|\nbbbb\ncccc\n", 12, 3).suffix == "\nbbbb\ncccc\n"


def test_both_sides_fit_into_the_room_together() -> None:
    found = cut("p\n" * 30 + "|" + "s\n" * 30, 60, 60, 45)
    assert found.prefix_tokens + found.suffix_tokens <= 45
    assert found.prefix.endswith("p\n")
    assert found.suffix.startswith("s\n")


def test_a_long_line_is_cut_next_to_the_cursor_and_not_read_through() -> None:
    count = Characters()
    found = window(at("x" * 2_500_000 + "ab|cd" + "y" * 2_500_000), count, 20, 10)
    assert (found.prefix, found.suffix) == ("x" * 18 + "ab", "cd" + "y" * 8)
    assert found.cut_before
    assert found.cut_after
    assert count.seen < 10_000


def test_a_long_file_is_not_counted_through() -> None:
    count = Characters()
    window(at("line\n" * 50_000 + "|" + "line\n" * 50_000), count, 500, 100)
    assert count.seen < 2_000


def test_the_head_stays_while_lines_are_typed() -> None:
    """Thirty new lines, a key at a time: the first line moves once in many keys, and never by less than a step."""
    text = "".join(f"line {n:03d} of the file\n" for n in range(400))
    starts: list[int] = []
    for n in range(30):
        typed = "".join(f"new line {k:02d} here\n" for k in range(n))
        starts += [window(at(f"{text}{typed}{'abc'[:k]}|\nrest\n"), Characters(), 3_000, 50).first for k in range(4)]
    moves = [b - a for a, b in itertools.pairwise(starts) if a != b]
    assert len(moves) <= 2
    assert all(move >= STEPS[0] for move in moves)
