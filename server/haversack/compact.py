"""Shrinks a conversation to its share of the window, no further than needed, and never below what must stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from haversack.templates.chat import Counter, message_tokens
from haversack.types import CompactTier, HaversackError, History, Message, Role, ToolCall

# The end of a conversation is what the question refers to; these messages are never touched.
KEEP_RECENT = 4

# A tool result up to this many characters costs about as much as the marker that would replace it.
LARGE_TOOL_TEXT = 200

# From here on the history is near its share, and whoever shows it should say so.
WARNING_SHARE = 0.8

# The digest quotes the first words of each message up to this length, enough to tell what it was about ...
DIGEST_LINE = 80

# ... and of this many user messages at most, the latest ones; of fewer when there is no room for more.
DIGEST_LINES = (10, 5, 2, 0)

Step = Callable[[tuple[Message, ...], int, Counter], tuple[Message, ...]]


def compact(history: Sequence[Message], share: int, counter: Counter) -> History:
    """The history within `share` tokens, by the mildest tier that gets there; message order is kept.

    Untouched: the most recent messages, pinned ones, and system messages. A tool call and its results stay or go
    together. Raises `context_window_exceeded` when what must stay does not fit.
    """
    given = tuple(history)
    counter = _Once(counter)
    before = _cost(given, counter)
    if before <= share:
        return History(given, CompactTier.NONE, before, before, warning=before > WARNING_SHARE * share)
    messages = given
    for tier, step in TIERS:
        messages = _if_smaller(step(messages, share, counter), messages, counter)
        after = _cost(messages, counter)
        if after <= share:
            return History(messages, tier, before, after, warning=True, note=_note(given, messages))
    raise _too_large(messages, share, counter)


class _Once:
    """A counter that knows what a message cost: every step asks for the cost of the whole conversation again."""

    def __init__(self, counter: Counter) -> None:
        self.count = counter.count
        self._known: dict[int, tuple[Message, int]] = {}  # by identity; the message is kept, so no other takes its id

    def of(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, message_tokens(message, self))
        return known[1]


def strip_tools(messages: tuple[Message, ...], share: int, counter: Counter) -> tuple[Message, ...]:
    """Large tool results and arguments of older turns become markers that name the tool and the size."""
    fixed = untouchable(messages)
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return tuple(
        message if at in fixed else _stripped(message, names.get(message.tool_call_id, message.name))
        for at, message in enumerate(messages)
    )


def plain_digest(messages: tuple[Message, ...], share: int, counter: Counter) -> tuple[Message, ...]:
    """The oldest messages become one message that counts them and quotes how the user's began.

    As few as needed are folded; each fold takes a whole exchange of tool call and results with it.
    """
    fixed = untouchable(messages)
    costs = [_tokens(message, counter) for message in messages]
    left, folded = sum(costs), list[int]()
    best = messages
    for group in exchanges(messages):
        if fixed.intersection(group):
            continue
        folded.extend(group)
        left -= sum(costs[at] for at in group)
        if left <= share:  # before that, no digest is short enough
            best = _if_smaller(_with_digest(messages, frozenset(folded), DIGEST_LINES[0]), best, counter)
            if _cost(best, counter) <= share:
                return best
    for n_lines in DIGEST_LINES[1:] if folded else ():
        best = _with_digest(messages, frozenset(folded), n_lines)
        if _cost(best, counter) <= share:
            return best
    return tuple(message for at, message in enumerate(messages) if at not in folded)


# In the order of trying, mildest first. A tier that needs a model takes its place between these two.
TIERS: tuple[tuple[CompactTier, Step], ...] = (
    (CompactTier.TOOL_STRIP, strip_tools),
    (CompactTier.PLAIN_FALLBACK, plain_digest),
)


def untouchable(messages: Sequence[Message]) -> frozenset[int]:
    """Places of messages that stay as they are, with every member of their exchanges."""
    recent = len(messages) - KEEP_RECENT
    fixed = {at for at, m in enumerate(messages) if at >= recent or m.pinned or m.role is Role.SYSTEM}
    for group in exchanges(messages):
        if fixed.intersection(group):
            fixed.update(group)
    return frozenset(fixed)


def exchanges(messages: Sequence[Message]) -> tuple[tuple[int, ...], ...]:
    """Places grouped so that a message with tool calls is together with all its results, in order of first place."""
    group_of_call: dict[str, list[int]] = {}
    groups: list[list[int]] = []
    group: list[int] | None
    for at, message in enumerate(messages):
        group = group_of_call.get(message.tool_call_id) if message.tool_call_id else None
        if group is None:
            group = []
            groups.append(group)
        group.append(at)
        for call in message.tool_calls:
            group_of_call[call.id] = group
    return tuple(tuple(group) for group in groups)


def _stripped(message: Message, tool: str) -> Message:
    content = message.content
    if message.role is Role.TOOL and len(content) > LARGE_TOOL_TEXT:
        content = f"[result of {tool or 'a tool'} left out: {len(content):,} characters]"
    calls = tuple(
        ToolCall(call.id, call.name, json.dumps({"left_out": f"{len(call.arguments):,} characters"}))
        if len(call.arguments) > LARGE_TOOL_TEXT
        else call
        for call in message.tool_calls
    )
    if content == message.content and calls == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def _with_digest(messages: Sequence[Message], folded: frozenset[int], n_lines: int) -> tuple[Message, ...]:
    """The messages with the folded ones replaced by a digest at the place of the first."""
    digest = Message(Role.USER, _digest([messages[at] for at in sorted(folded)], n_lines))
    first = min(folded)
    return tuple(
        digest if at == first else message for at, message in enumerate(messages) if at == first or at not in folded
    )


def _digest(messages: Sequence[Message], n_lines: int) -> str:
    """Counts and first words; an earlier digest among the messages gives its own, so digests do not pile up."""
    counts: dict[str, int] = {"user": 0, "assistant": 0, "tool": 0, "system": 0}
    lines: list[str] = []
    for message in messages:
        earlier = _DIGEST.match(message.content)
        if message.role is Role.USER and earlier:
            for number, role in _COUNT.findall(earlier[1]):
                counts[role] += int(number)
            lines += [line[2:] for line in message.content.split("\n")[1:] if line.startswith("- ")]
            continue
        counts[message.role.value] += 1
        if message.role is Role.USER and message.content.strip():
            lines.append(" ".join(message.content.split())[:DIGEST_LINE])
    told = ", ".join(f"{n} from {role}" for role, n in counts.items() if n)
    topics = "".join(f"\n- {line}" for line in lines[max(0, len(lines) - n_lines) :])
    return f"[Earlier messages left out: {told}.{' The user wrote:' if topics else ''}]{topics}"


_DIGEST = re.compile(r"\[Earlier messages left out: ([^.]*)\.")
_COUNT = re.compile(r"(\d{1,9}) from (user|assistant|tool)")


def _if_smaller(candidate: tuple[Message, ...], current: tuple[Message, ...], counter: Counter) -> tuple[Message, ...]:
    return candidate if _cost(candidate, counter) < _cost(current, counter) else current


def _cost(messages: Sequence[Message], counter: Counter) -> int:
    return sum(_tokens(message, counter) for message in messages)


def _tokens(message: Message, counter: Counter) -> int:
    return counter.of(message) if isinstance(counter, _Once) else message_tokens(message, counter)


def _note(given: Sequence[Message], left: Sequence[Message]) -> str:
    kept = set(map(id, left))
    return f"{sum(1 for message in given if id(message) not in kept)} of {len(given)} messages shortened or left out"


def _too_large(messages: Sequence[Message], share: int, counter: Counter) -> HaversackError:
    needed = _cost(messages, counter)
    largest = max(range(len(messages)), key=lambda at: _tokens(messages[at], counter))
    role, size = messages[largest].role.value, _tokens(messages[largest], counter)
    return HaversackError(
        "context_window_exceeded",
        f"The recent and pinned part of the conversation needs {needed:,} tokens, {needed - share:,} more than "
        f"there are ({share:,}); the largest message ({role}) takes {size:,}.",
        "Start a new conversation, unpin messages, or choose a model with a larger window.",
        needed=needed,
        budget=share,
        largest_role=role,
        largest_tokens=size,
    )
