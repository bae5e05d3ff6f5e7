"""Hides secrets in what is about to leave: the words of the request before it is packed, the blocks after.

Nothing that is hidden is named by more than its kind and its line. A text never costs more tokens than before, so
what fitted still fits, and lines stay lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import cast

from haversack.fitting import text_of
from haversack.lines import Spans
from haversack.policy.secrets import find_secrets
from haversack.templates.chat import Counter, render_block
from haversack.types import (
    Block,
    Candidate,
    Decision,
    FileText,
    Message,
    Outcome,
    Packed,
    Problem,
    Reason,
    Request,
    Scored,
    Settings,
    ToolCall,
)
from haversack_index.text import split_lines

# What stands in place of a secret: the first of these with which a text is not dearer than before.
MARKS = ("[redacted: {}]", "[redacted]", "***", "")
# Secrets named in one row; the others are counted.
MOST_NAMED = 5

Spot = tuple[int, int, str]
"""Start and end in a line, and the kind of secret."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A block with the lines it was made from and the secrets in them, and in its title."""

    block: Block
    lines: Sequence[str]
    spans: Spans
    spots: Mapping[int, Sequence[Spot]]
    title: Mapping[int, Sequence[Spot]]


def redact_blocks(packed: Packed, scored: Sequence[Scored], counter: Counter, *, hide: bool) -> Packed:
    """The blocks without their secrets, and decisions that tell of them. With `hide` off, they are flagged alone.

    A file is searched as a whole: a secret counts even when only a part of it is in the block.
    """
    candidates = {item.marked.candidate.id: item.marked.candidate for item in scored}
    known: dict[int, Mapping[int, tuple[Spot, ...]]] = {}
    blocks: list[Block] = []
    told: dict[str, list[str]] = {}
    saved: dict[str, int] = {}
    for block in packed.blocks:
        file = _file_of(block, candidates)
        lines, spans = (file.lines, block.spans) if file is not None else _lines_of(block.text)
        if id(lines) not in known:
            known[id(lines)] = spots_by_line(lines, fragment=file is None)
        spots = {at: known[id(lines)][at] for at in known[id(lines)] if any(a <= at < b for a, b in spans)}
        title = spots_by_line((block.title,))
        shown = _Shown(block, lines, spans, spots, title)
        for item in block.items if spots or title else ():
            told.setdefault(item, []).extend(_told(shown, candidates.get(item), file))
        clean = _clean(shown, counter) if hide and (spots or title) else block
        blocks.append(clean)
        _share_out(block.tokens - clean.tokens, block.items, packed, saved)
    if not told:
        return packed
    decisions = tuple(_decided(decision, told.get(decision.id), saved, hide) for decision in packed.decisions)
    return replace(packed, blocks=tuple(blocks), decisions=decisions, used=packed.used - sum(saved.values()))


def redact_words(
    request: Request, settings: Settings, counter: Counter, numbers: Sequence[int] = ()
) -> tuple[Request, Settings, tuple[Problem, ...]]:
    """Question, conversation and system prompt without their secrets, and a problem for each place that had one.

    `numbers` name the messages, where they are not counted from 1.
    """
    question, kinds = hidden(request.text, counter.count)
    system, in_system = hidden(settings.system_prompt, counter.count)
    places = [("your question", kinds), ("the system prompt", in_system)]
    history: list[Message] = []
    for number, message in zip(numbers or count(1), request.history, strict=False):
        clean, found = _message(message, counter)
        history.append(clean)
        places.append((f"message {number} of the conversation ({message.role.value})", found))
    problems = tuple(_problem(place, found) for place, found in places if found)
    if not problems:
        return request, settings, ()
    request = replace(request, text=question, history=tuple(history))
    return request, replace(settings, system_prompt=system), problems


def hidden(text: str, cost: Callable[[str], int], marks: Sequence[str] = MARKS) -> tuple[str, tuple[str, ...]]:
    """The text with a mark in place of each secret, and the kinds of what was there."""
    lines = tuple(split_lines(text))
    spots = spots_by_line(lines, fragment=True)
    if not spots:
        return text, ()
    limit = cost(text)
    for mark in marks:
        clean = "".join(_rewritten(lines, spots, mark))
        if cost(clean) <= limit:
            break
    else:
        clean = "".join(_emptied(lines, spots))
    return clean, tuple(dict.fromkeys(kind for found in spots.values() for _, _, kind in found))


def spots_by_line(lines: Sequence[str], *, fragment: bool = False) -> Mapping[int, tuple[Spot, ...]]:
    """The secrets of a text by the number of the line they stand in; one of several lines stands in each of them."""
    found: dict[int, tuple[Spot, ...]] = {}
    line = start = 0
    for secret in find_secrets("".join(lines), fragment=fragment):
        while start + len(lines[line]) <= secret.start:
            start += len(lines[line])
            line += 1
        at, begin = line, start
        while begin < secret.end:
            inside = lines[at]
            content = inside.rstrip("\r\n")
            first = max(secret.start - begin, len(content) - len(content.lstrip()) if at > line else 0)
            last = min(secret.end - begin, len(content))
            if first < last:
                found[at] = (*found.get(at, ()), (first, last, secret.kind))
            begin += len(inside)
            at += 1
    return found


def _rewritten(lines: Sequence[str], spots: Mapping[int, Sequence[Spot]], mark: str) -> list[str]:
    clean = list(lines)
    for at, found in spots.items():
        for start, end, kind in reversed(found):
            clean[at] = clean[at][:start] + mark.format(kind) + clean[at][end:]
    return clean


def _emptied(lines: Sequence[str], spots: Mapping[int, Sequence[Spot]]) -> list[str]:
    """Nothing of the lines with a secret but their ends: the last resort, and cheap with any tokenizer."""
    return [line[len(line.rstrip("\r\n")) :] if at in spots else line for at, line in enumerate(lines)]


def _clean(shown: _Shown, counter: Counter) -> Block:
    clean = shown.block
    for mark in (*MARKS, None):
        if mark is None:
            lines, (title,) = _emptied(shown.lines, shown.spots), _rewritten((shown.block.title,), shown.title, "")
        else:
            lines = _rewritten(shown.lines, shown.spots, mark)
            (title,) = _rewritten((shown.block.title,), shown.title, mark)
        bare = replace(shown.block, text=text_of(shown.spans, lines), title=title)
        clean = replace(bare, tokens=counter.count(render_block(bare)))
        if clean.tokens <= shown.block.tokens:
            break
    return clean


def _file_of(block: Block, candidates: Mapping[str, Candidate]) -> FileText | None:
    """The file whose lines the block shows; None for a text, and when no candidate's file is what it shows."""
    for item in block.items:
        file = candidates[item].file if item in candidates else None
        if file is not None and (file.folder, file.path) == (block.folder, block.path):
            return file if text_of(block.spans, file.lines) == block.text else None
    return None


def _lines_of(text: str) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    lines = tuple(split_lines(text))
    return lines, ((0, len(lines)),)


def _told(shown: _Shown, candidate: Candidate | None, file: FileText | None) -> list[str]:
    """Kind and lines of each secret that a candidate shows; lines of the file, else of its own text."""
    found: list[tuple[str, int, int]] = []
    for at, spots in sorted(shown.spots.items()):
        if file is not None and candidate is not None and not _shows(candidate, at):
            continue
        for _, _, kind in spots:
            if found and found[-1][0] == kind and found[-1][2] == at:
                found[-1] = (kind, found[-1][1], at + 1)
            else:
                found.append((kind, at, at + 1))
    its = "" if file is not None else "its "
    told = [f"{kind} at {its}line{f' {a + 1}' if b == a + 1 else f's {a + 1}-{b}'}" for kind, a, b in found]
    return told + [f"{kind} in its title" for spots in shown.title.values() for _, _, kind in spots]


def _shows(candidate: Candidate, line: int) -> bool:
    return any(start <= line < end for form in candidate.forms for start, end in form.spans)


def _share_out(tokens: int, items: Sequence[str], packed: Packed, saved: dict[str, int]) -> None:
    """What a block became cheaper by, taken from what its items are said to have added."""
    spent = {decision.id: decision.tokens_after for decision in packed.decisions if decision.id in items}
    for item in items:
        part = max(0, min(tokens, spent.get(item, 0) - saved.get(item, 0)))
        saved[item] = saved.get(item, 0) + part
        tokens -= part


def _decided(decision: Decision, told: Sequence[str] | None, saved: Mapping[str, int], hide: bool) -> Decision:
    after = decision.tokens_after - saved.get(decision.id, 0)
    if not told:
        return replace(decision, tokens_after=after)
    flags = (*decision.flags, "secret")
    if not hide:
        return replace(decision, flags=flags)
    named = list(dict.fromkeys(told))
    note = ", ".join(named[:MOST_NAMED])
    if len(named) > MOST_NAMED:
        note += f" and {len(named) - MOST_NAMED} more"
    return replace(
        decision,
        outcome=Outcome.REDACTED,
        reasons=(*decision.reasons, Reason.SECRET),
        tokens_after=after,
        note="; ".join(part for part in (decision.note, note) if part),
        flags=flags,
    )


def _message(message: Message, counter: Counter) -> tuple[Message, tuple[str, ...]]:
    content, kinds = hidden(message.content, counter.count)
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        arguments, found = _arguments(call.arguments, counter.count)
        calls.append(replace(call, arguments=arguments))
        kinds += found
    return (replace(message, content=content, tool_calls=tuple(calls)), kinds) if kinds else (message, ())


def _arguments(text: str, cost: Callable[[str], int]) -> tuple[str, tuple[str, ...]]:
    """The same for JSON text, which stays JSON: each string in it is read as what it means, not as it is written."""
    kinds: list[str] = []
    try:
        given: object = json.loads(text)
        for mark in MARKS:
            kinds.clear()
            clean = _in_strings(given, mark, kinds)
            if not kinds:
                return text, ()
            written = json.dumps(clean, ensure_ascii=False, separators=(",", ":"))
            if cost(written) <= cost(text):
                return written, tuple(dict.fromkeys(kinds))
    except (ValueError, RecursionError):
        kinds = [secret.kind for secret in find_secrets(text, fragment=True)]
    return ("{}", tuple(dict.fromkeys(kinds))) if kinds else (text, ())


def _in_strings(value: object, mark: str, kinds: list[str]) -> object:
    if isinstance(value, str):
        clean, found = hidden(value, _free, (mark,))
        kinds += found
        return clean
    if isinstance(value, list):
        return [_in_strings(each, mark, kinds) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return {str(_in_strings(key, mark, kinds)): _named(key, each, mark, kinds) for key, each in entries}
    return value


def _named(key: str, value: object, mark: str, kinds: list[str]) -> object:
    """A value whose name tells that it is a secret, where the value alone does not."""
    clean = _in_strings(value, mark, kinds)
    if isinstance(value, str) and clean == value:
        found = find_secrets(f'{key} = "{value}"')
        if found:
            kinds.append(found[0].kind)
            return mark.format(found[0].kind)
    return clean


def _free(text: str) -> int:
    """A cost that lets any mark pass: of JSON the whole is weighed."""
    del text
    return 0


def _problem(place: str, kinds: Sequence[str]) -> Problem:
    names = ", ".join(dict.fromkeys(kinds))
    return Problem(
        "redact",
        "secret_redacted",
        f"A secret in {place} ({names}) was hidden from the remote model.",
        "Take it out, or choose a local model, which gets it as it is.",
    )
