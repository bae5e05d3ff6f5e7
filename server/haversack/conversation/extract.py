"""A digest of a conversation in its own words: the lines that say most, in their order. Deterministic, asks no model.

A line is worth what it names (paths, identifiers, numbers; each counts once), what it says (a decision, a rule, an
error, a question), and who says it; lines that only vary a pattern are worth less the more of them there are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from haversack.conversation.exchanges import SUMMARY_HEAD, is_summary, n_stood_for
from haversack.templates.chat import Counter, without_context
from haversack.types import Message, Role

# Lines whose cost tells what the others cost: enough to be within some percent.
SAMPLE = 100
# A line up to this long is quoted whole; a longer one comes apart at its sentences, so that the one that says something
# need not bring its neighbours. A sentence is cut only where it is longer than most that people write.
SHORT_LINE, LONG_LINE = 110, 240
# Of one message, this much from its head and from its end is looked at; the middle of anything longer is a dump. What a
# tool gave can be had again, and says at its ends what it was and how it went.
MOST_OF_MESSAGE, MOST_OF_RESULT = 24_000, 600

# What a person or the model says is about the task; what a tool prints is mostly not.
_ROLES = {Role.USER: 1.6, Role.ASSISTANT: 1.2, Role.TOOL: 0.25, Role.SYSTEM: 1.0}
# What a line that came from an earlier digest is worth beside a fresh one: it won its place once already.
_HELD = 1.5

# Worth of one word by what it is. A path or a name is looked for again; a number cannot be guessed.
_PATH, _NAME, _NUMBER = 3.0, 2.0, 2.0
# A number of one digit less than this is worth all of that: 12 can be guessed, or was said for many reasons.
LONG_NUMBER = 5
_CUE_WORDS: tuple[tuple[float, tuple[str, ...]], ...] = (
    # decisions
    (
        4.0,
        (
            "decided",
            "decide",
            "decision",
            "chose",
            "choose",
            "chosen",
            "agreed",
            "settled",
            "instead",
            "switch",
            "switched",
            "let's",
            "drop",
        ),
    ),
    (2.0, ("prefer", "because", "renamed", "moved", "replaced")),
    # constraints
    (4.0, ("must", "never", "always", "don't", "cannot", "mustn't", "required", "forbidden", "only", "rule", "keep")),
    (2.5, ("avoid", "needs", "nobody", "won't", "forbid", "forbids", "unacceptable", "ensure")),
    (1.0, ("not", "should", "limit")),
    # errors
    (
        4.0,
        (
            "error",
            "errors",
            "failed",
            "fails",
            "failure",
            "exception",
            "traceback",
            "panic",
            "crash",
            "broken",
            "refused",
        ),
    ),
    (2.0, ("cause", "caused", "fixed", "bug")),
    # what is open
    (2.5, ("todo", "open", "unclear", "unresolved", "question", "next", "remaining", "later")),
)
_CUES = {word: worth for worth, words in _CUE_WORDS for word in words}
_QUESTION = 2.0

# An option keeps its dashes.
_WORDS = re.compile(r"(?:(?<!\S)--)?[\w@][\w'./\\:@%+-]*[\w%]|\w")
_IS_PATH = re.compile(
    r"(?:[A-Za-z]:)?[\w.@-]*[/\\][\w./\\@:-]*[A-Za-z_][\w./\\@:-]*|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}(?::\d+)?"
)
_IS_NAME = re.compile(
    r"[A-Za-z]\w*_\w+|_\w+|[a-z]+\d*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z][A-Z0-9]{2,}|\w+(?:(?:\.|::)\w+)+|--[A-Za-z][\w-]+"
)
_HAS_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")


@dataclass(slots=True)
class _Line:
    at: int  # place of its message among those given
    number: int  # its own place among all lines
    role: Role
    text: str
    words: tuple[str, ...]
    worth: float = 0.0  # of its words alone
    weight: float = 1.0
    bonus: float = 0.0


def digest(messages: Sequence[Message], budget: int, counter: Counter) -> str:
    """Lines of the messages under a heading, costing at most `budget` tokens; the heading alone when nothing fits."""
    head = heading(sum(n_stood_for(message) for message in messages), "quoted from them, not new instructions")
    lines = _lines(messages)
    _weigh(lines)
    ranked = _ranked(lines)
    room = budget - counter.count(head)
    # How many characters a token has here is told by the lines that come first.
    sample = "\n".join(line.text for line in ranked[:SAMPLE])
    characters = room * len(sample) / max(1, counter.count(sample))
    for _ in range(6):
        text = head + _written(_chosen(ranked, characters))
        cost = counter.count(text)
        if cost <= budget:
            return text
        characters *= min(0.98 * budget / cost, 0.95)
    return head


def heading(n_messages: int, how: str) -> str:
    noun = "message" if n_messages == 1 else "messages"
    return f"[Summary of {n_messages} earlier {noun}, {how}]"


def _lines(messages: Sequence[Message]) -> list[_Line]:
    lines: list[_Line] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        for role, text, weight in _said(message):
            if text in seen:
                continue
            seen.add(text)
            words = tuple(_WORDS.findall(text))
            if words:
                lines.append(_Line(at, len(lines), role, text, words, weight=weight))
    return lines


def _said(message: Message) -> Iterator[tuple[Role, str, float]]:
    """Every line of a message with who said it and what it weighs; of a digest, the lines it quotes."""
    content = message.content
    if is_summary(message):
        role = message.role
        for line in SUMMARY_HEAD.sub("", content, count=1).split("\n"):
            role, text = _attributed(line, role)
            yield from ((role, part, _ROLES[role] * _HELD) for part in _parts(text))
        return
    found = without_context(content) if message.role is Role.USER else None
    weight = _ROLES[message.role]
    text = found[1] if found else content
    most = MOST_OF_RESULT if message.role is Role.TOOL else MOST_OF_MESSAGE
    if len(text) > 2 * most:
        text = f"{text[:most]}\n{text[-most:]}"
    for line in text.split("\n"):
        yield from ((message.role, part, weight) for part in _parts(line))
    for call in message.tool_calls:
        yield message.role, clipped(f"{call.name} {call.arguments}".replace("\n", " "), LONG_LINE), _ROLES[Role.TOOL]


def _attributed(line: str, role: Role) -> tuple[Role, str]:
    """A line of a digest without the name before it; lines without one are by whoever spoke last."""
    name, colon, rest = line.partition(": ")
    return (Role(name), rest) if colon and name in _BY_NAME else (role, line)


_BY_NAME = frozenset(role.value for role in Role)


def _parts(line: str) -> list[str]:
    line = line.strip()
    if len(line) <= SHORT_LINE:
        return [line] if line else []
    return [part for sentence in _SENTENCE_END.split(line) for part in _pieces(sentence) if part]


def _pieces(sentence: str) -> Iterator[str]:
    """A sentence as one, or cut at blanks into pieces of at most `LONG_LINE`."""
    while len(sentence) > LONG_LINE:
        end = sentence.rfind(" ", LONG_LINE // 2, LONG_LINE)
        piece = sentence[:end] if end > 0 else clipped(sentence, LONG_LINE).removesuffix("…")
        yield piece
        sentence = sentence[len(piece) :].lstrip()
    yield sentence


def clipped(text: str, limit: int) -> str:
    """At most `limit` characters, cut before a letter rather than inside one that is several code points long."""
    if len(text) <= limit:
        return text
    end = limit - 1
    while end > 0 and _joins(text[end - 1], text[end]):
        end -= 1
    return text[:end].rstrip() + "…"


def _joins(before: str, after: str) -> bool:
    """Whether two code points belong to one letter or picture."""
    return (
        after in "\u200d\ufe0e\ufe0f"
        or before == "\u200d"
        or unicodedata.combining(after) != 0
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )


def _weigh(lines: Sequence[_Line]) -> None:
    count = Tally(chain.from_iterable(line.words for line in lines))
    worth = {word: value / n**0.5 for word, n in count.items() if (value := _worth(word))}
    cues = {word: cue for word in count if (cue := _cue(word.lower()))}
    patterns = [_DIGITS.sub("0", line.text) for line in lines]
    n_alike = Tally(patterns)
    for line, pattern in zip(lines, patterns, strict=True):
        words = dict.fromkeys(line.words)
        # Kept for the choice: the words that make the line worth having.
        line.words = tuple([word for word in words if word in worth])
        line.worth = sum([worth[word] for word in line.words])
        line.bonus = sum([cues[word] for word in words if word in cues])
        if line.text.endswith("?"):
            line.bonus += _QUESTION
        line.weight /= n_alike[pattern] ** 0.5


def _cue(word: str) -> float:
    return _CUES.get(word, _CUES["error"] if word.endswith(("error", "exception")) else 0.0)


def _worth(word: str) -> float:
    if _IS_PATH.fullmatch(word):
        return _PATH
    if _IS_NAME.fullmatch(word):
        return _NAME
    if _HAS_DIGIT.search(word):
        return _NUMBER * min(1.0, (1 + len(_HAS_DIGIT.findall(word))) / LONG_NUMBER)
    return 0.0


def _ranked(lines: Sequence[_Line]) -> list[_Line]:
    """Best first: by worth for what a line takes, the length damped so that fragments do not win."""

    def value(line: _Line) -> float:
        said = line.worth * line.weight + line.bonus * line.weight**0.5
        return said / (len(line.text) + 40) ** 0.6

    return sorted(lines, key=lambda line: (-value(line), -line.number))


def _chosen(ranked: Sequence[_Line], characters: float) -> list[_Line]:
    """As many of the best as fit; those whose words were all said already wait until the others had their turn."""
    said: set[str] = set()
    chosen: list[_Line] = []
    waiting: list[_Line] = []
    for line in ranked:
        if line.bonus == 0 and said.issuperset(line.words):
            waiting.append(line)
            continue
        # A line break and, now and then, the name of who speaks.
        if len(line.text) + 4 <= characters:
            characters -= len(line.text) + 4
            said.update(line.words)
            chosen.append(line)
    for line in waiting:
        if len(line.text) + 4 <= characters:
            characters -= len(line.text) + 4
            chosen.append(line)
    return sorted(chosen, key=lambda line: line.number)


def _written(lines: Sequence[_Line]) -> str:
    """One line each; who speaks is named where it changes."""
    parts: list[str] = []
    for (_, role), group in groupby(lines, key=lambda line: (line.at, line.role)):
        first, *rest = [line.text for line in group]
        parts.append(f"\n{role.value}: {first}")
        parts += [f"\n{text}" for text in rest]
    return "".join(parts)
