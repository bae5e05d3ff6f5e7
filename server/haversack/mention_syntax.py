"""How a mention is written: `@src/a.py`, `@"my file.py":10-20`, `@a.py#L3-L9`, `@Class.method`, `@diff`."""

from __future__ import annotations

import re

from haversack.types import Mention, MentionKind

# An `@` inside a word is an e-mail address or a version (`a@b.org`, `pkg@1.2`), not a mention.
_AT_WORD = re.compile(
    r"""(?<![A-Za-z0-9_.@/+%\-\\])@(?:
        (?P<quote>["'])(?P<quoted>[^"'\n]+)(?P=quote)(?P<suffix>(?:[:\#]L?\d+(?:-L?\d+)?)?)
        |(?P<bare>(?!@)[^\s"'`,;()<>\[\]{}|，。、；：？！）】」]+)
    )""",
    re.VERBOSE,
)
_LINES = re.compile(r"(?:[:#]L?(?P<first>\d+))(?:-L?(?P<last>\d+)|:\d+(?:-\d+)?)?$")
# Pasted code is not a place for mentions: decorators and annotations live there.
_CODE = re.compile(r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]*`", re.DOTALL)
_WORD_KINDS = {"diff": MentionKind.DIFF, "problems": MentionKind.PROBLEMS}


def mentions_in(text: str) -> tuple[Mention, ...]:
    """The mentions written in a message, in order, without repeats."""
    bare_text = _CODE.sub(lambda match: " " * len(match.group()), text)
    found: list[Mention] = []
    for match in _AT_WORD.finditer(bare_text):
        if match["quoted"] is not None:
            found.append(mention_of(match["quoted"] + match["suffix"], from_text=True))
            continue
        word = match["bare"].rstrip(".,:;!?*_~")
        if word:
            found.append(mention_of(word, from_text=True))
    return tuple(dict.fromkeys(found))


def mention_of(value: str, *, from_text: bool = False) -> Mention:
    """One mention as written, its line range split off: people's lines (from 1, both ends in) become ours."""
    kind = _WORD_KINDS.get(value)
    if kind is not None:
        return Mention(value, kind, from_text=from_text)
    value, lines = without_lines(value)
    return Mention(value, None, lines, from_text)


def without_lines(value: str) -> tuple[str, tuple[int, int] | None]:
    """`a.py:10-20`, `a.py#L10-L20`, `a.py:10:5` to the name and whole lines (from 0, end exclusive)."""
    match = _LINES.search(value)
    if match is None or match.start() == 0:
        return value, None
    first = int(match["first"])
    last = int(match["last"] or first)
    if first == 0 or last < first:
        return value[: match.start()], (max(0, min(first, last) - 1), max(first, last, 1))
    return value[: match.start()], (first - 1, last)
