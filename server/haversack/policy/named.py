"""Paths that a text or a call names without saying that it quotes them: headers of diffs, arguments of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import cast

from haversack.types import Message, Role, ToolCall

# A diff's headers, also inside a quote or a list.
_HEADER = re.compile(
    r"^[ \t>|*-]*?(?:diff --(?:git|cc|combined) (?P<both>\S.*)|(?:---|\+\+\+|\*\*\*) (?P<one>\S.*)"
    r"|(?:rename|copy) (?:from|to) (?P<moved>\S.*)|Index: (?P<index>\S.*))$",
    re.MULTILINE,
)
# Git quotes paths with special characters, and writes their bytes in octal.
_OCTAL = re.compile(r"(?:\\[0-7]{3})+")
_SIDE = re.compile(r"[abciow12]/")
_TIME = re.compile(r"\t.*$|\s+\d{4}-\d\d-\d\d .*$")
# Words of a command in an argument: paths of a shell line.
_WORD = re.compile(r"[^\s\"'`;|&<>()=]+")
# Longer arguments are texts, not commands.
LONGEST_COMMAND = 2_000


def diffed(text: str) -> Iterator[str]:
    """Every path that the headers of a diff in the text name; none where no line is one."""
    if "diff --" not in text and "+++ " not in text and "*** " not in text and "Index: " not in text:
        return
    for match in _HEADER.finditer(text):
        both = match["both"]
        for written in _two(both.strip()) if both else (match["one"] or match["moved"] or match["index"],):
            path = _unquoted(_TIME.sub("", written.rstrip()).strip())
            yield path
            if _SIDE.match(path):
                yield path[2:]


def _two(both: str) -> Iterator[str]:
    """`a/x b/x`, where either may hold spaces: every way to cut it."""
    yield both
    for match in re.finditer(r"\s+", both[:LONGEST_COMMAND]):
        yield both[: match.start()]
        yield both[match.end() :]


def _unquoted(path: str) -> str:
    if not (len(path) > 1 and path[0] == path[-1] == '"'):
        return path
    plain = _OCTAL.sub(
        lambda match: bytes(int(part, 8) & 255 for part in match[0].split("\\")[1:]).decode("utf-8", "replace"), path
    )
    return plain[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def said(call: ToolCall) -> Iterator[str]:
    """The texts in the arguments of a call, as they mean."""
    try:
        waiting: list[object] = [json.loads(call.arguments)]
    except (ValueError, RecursionError):
        waiting = [call.arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting += cast("list[object]", value)
        elif isinstance(value, dict):
            waiting += [*cast("dict[object, object]", value).items()]
        elif isinstance(value, tuple):
            waiting += cast("tuple[object, ...]", value)


def argued(call: ToolCall) -> Iterator[str]:
    """Every path that the arguments may name: each text that is one line, and the words of a command in it."""
    for value in said(call):
        text = value.strip()
        if not text or "\n" in text or len(text) > LONGEST_COMMAND:
            continue
        yield text
        yield from (word for word in _WORD.findall(text) if word != text and ("/" in word or "." in word))


def named(messages: Sequence[Message]) -> tuple[tuple[str, ...], ...]:
    """For each message, the paths it names so. A tool's result names those of the call that it answers, and so does
    a call that brings text of some lines: what it writes to a file is that file's text."""
    calls: dict[str, tuple[str, ...]] = {}
    found: list[tuple[str, ...]] = []
    for message in messages:
        asked: tuple[str, ...] = ()
        if message.tool_calls:
            # A service may count calls anew each turn: an id means its latest call.
            latest: dict[str, tuple[str, ...]] = {}
            for call in message.tool_calls:
                paths = tuple(argued(call))
                latest[call.id] = (*latest.get(call.id, ()), *paths)
                asked += paths if any("\n" in text.strip() for text in said(call)) else ()
            calls |= latest
        elif message.role is Role.TOOL:
            asked = calls.get(message.tool_call_id, ())
        texts = (message.content, *(text for call in message.tool_calls for text in said(call)))
        found.append(tuple(dict.fromkeys((*(path for text in texts for path in diffed(text)), *asked))))
    return tuple(found)
