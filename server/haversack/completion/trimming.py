"""Where a completion ends: at a model's own marks, at brackets that are not its own, where the text behind begins.

Pure: text in, a beginning of it out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from haversack_index.text import split_lines

PAIRS = {")": "(", "]": "[", "}": "{"}
# How far around the cursor brackets are matched, in characters: further ones seldom belong to the statement at hand,
# and this much is read in a millisecond.
REACH = 8_000

# Marks of models in their usual spelling, with ASCII or full-width bars. No program text looks like these, except one
# about such models. Marks that do (`[SUFFIX]`, `</s>`) only count among `stops`.
_MARK = re.compile(
    r"<[|｜][^<>\s|｜]{1,40}[|｜]>"
    r"|<(?:fim[_-](?:prefix|suffix|middle|pad)|file_sep|repo_name|reponame|filename|gh_stars|eos|bos|end_of_turn)>"
    r"|<\[(?:fim-(?:prefix|suffix|middle)|end▁of▁sentence)\]>"
    r"|<(?:PRE|SUF|MID|EOT)>"
)
# The beginning of a mark with bars at the very end, where the answer was cut inside it.
_CUT_MARK = re.compile(r"<[|｜][^<>\s|｜]{0,40}\Z")

# Strings and comments, whose brackets do not count. A quote without its end on the line is a letter like any other
# (an apostrophe, a lifetime), so that what comes behind it counts.
_PASSIVE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\\n])*`|//[^\n]*|/\*.*?\*/', re.DOTALL)
_HASH_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#[^\n]*")
# Languages in which `#` begins a comment.
_HASH_LANGUAGES = frozenset({"python", "ruby", "shellscript", "perl", "r", "julia", "yaml", "toml", "elixir", "nim"})


def before_marks(text: str, stops: Sequence[str] = ()) -> str:
    """The text before the first mark of any model, or the first of `stops` (the model's own, which may look like
    anything)."""
    ends = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    if found := _MARK.search(text):
        ends.append(found.start())
    if ends:
        return text[: min(ends)]
    cut = _CUT_MARK.search(text)
    return text[: cut.start()] if cut else text


def before_foreign_brackets(text: str, before: str, behind: str, language: str = "") -> str:
    """The text before the first closing bracket that closes nothing of its own and nothing still open at the cursor.

    `before` and `behind` are the texts around the cursor. A bracket that `behind` closes already is not still open.
    """
    opened = _unclosed(before[-REACH:], language)
    closed_behind = _unopened(behind[:REACH], language)
    own: list[str] = []
    for place, letter in _brackets(text, language):
        if letter not in PAIRS:
            own.append(letter)
        elif own:
            if own.pop() != PAIRS[letter]:
                return text[:place]
        # The text behind closes the innermost open bracket first, so with any closed there, this one is not ours.
        elif closed_behind or not opened or opened.pop() != PAIRS[letter]:
            return text[:place]
    return text


def before_overlap(text: str, behind: str) -> str:
    """The text without its end, where that end is the beginning of what stands behind the cursor on the same line;
    and up to the line that is the next one behind."""
    rest, *following = split_lines(behind) or [""]
    rest = rest.rstrip()
    text = _before_line(text, next((line.rstrip() for line in following if line.strip()), ""))
    for size in range(min(len(rest), len(text)), 0, -1):
        if text.endswith(rest[:size]) and not _cuts_a_word(text, rest, size):
            return text[: len(text) - size]
    return text


def is_repetition(text: str, before: str, behind: str) -> bool:
    """Whether the first line, with what stands before it, is the line above or the next line behind once more.

    Lines without a letter or digit (`}`, `);`) may well come twice.
    """
    above = split_lines(before) or [""]
    current = "" if above[-1].endswith(("\n", "\r")) else above.pop()
    first = (split_lines(text) or [""])[0]
    line = f"{current}{first}".strip()
    if not re.search(r"\w", line) or not first.strip():
        return False
    last = next((each.strip() for each in reversed(above) if each.strip()), "")
    following = next((each.strip() for each in split_lines(behind)[1:] if each.strip()), "")
    return line in (last, following)


def _before_line(text: str, line: str) -> str:
    """The text before the first whole line that is `line`; the first line is the end of another, so it never is."""
    if not re.search(r"\w", line):
        return text
    lines = split_lines(text)
    for at, each in enumerate(lines[1:], 1):
        if each.rstrip() == line:
            return "".join(lines[:at]).rstrip("\r\n")
    return text


def _cuts_a_word(text: str, rest: str, size: int) -> bool:
    """Whether an overlap of `size` letters begins or ends inside a word: it is then most likely another word."""
    start = len(text) - size
    inside_text = start > 0 and _is_word(text[start - 1]) and _is_word(text[start])
    inside_rest = size < len(rest) and _is_word(rest[size - 1]) and _is_word(rest[size])
    return inside_text or inside_rest


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _brackets(text: str, language: str) -> list[tuple[int, str]]:
    """Place and letter of each bracket outside strings and comments."""

    def blank(found: re.Match[str]) -> str:
        return " " * len(found[0])

    plain = _PASSIVE.sub(blank, text)
    if language in _HASH_LANGUAGES:
        plain = _HASH_COMMENT.sub(blank, plain)
    return [(found.start(), found[0]) for found in re.finditer(r"[()\[\]{}]", plain)]


def _unclosed(text: str, language: str) -> list[str]:
    """Opening brackets without their closing one, outermost first."""
    waiting: list[str] = []
    for _, letter in _brackets(text, language):
        if letter not in PAIRS:
            waiting.append(letter)
        elif waiting and waiting[-1] == PAIRS[letter]:
            waiting.pop()
    return waiting


def _unopened(text: str, language: str) -> int:
    """How many closing brackets have no opening one before them."""
    depth = lowest = 0
    for _, letter in _brackets(text, language):
        depth += 1 if letter not in PAIRS else -1
        lowest = min(lowest, depth)
    return -lowest
