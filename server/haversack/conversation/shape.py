"""What providers demand of a conversation's shape, by model family, and how a conversation is made to fit.

A request that breaks one of these rules is refused whole, so they are mended before anything is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from haversack.types import Message, Role

OPENING = "[The conversation begins with the assistant.]"
NO_RESULT = "[no result of this call is recorded]"


@dataclass(frozen=True, slots=True)
class Shape:
    """`user_first`: the first message that is no system message is the user's. `system_first`: system messages stand
    at the front. `paired`: a tool's result follows its call, and every call has one."""

    user_first: bool
    system_first: bool
    paired: bool


# The strictest shape suits every provider, so families that are not known have it.
STRICT = Shape(user_first=True, system_first=True, paired=True)
# By how the family's name begins. Where a family is missing: STRICT.
SHAPES: tuple[tuple[str, Shape], ...] = (
    # System messages anywhere, any first message; calls and results are checked against each other.
    ("gpt", Shape(user_first=False, system_first=False, paired=True)),
    ("o1", Shape(user_first=False, system_first=False, paired=True)),
    ("o3", Shape(user_first=False, system_first=False, paired=True)),
    ("grok", Shape(user_first=False, system_first=False, paired=True)),
    ("deepseek", Shape(user_first=False, system_first=False, paired=True)),
    # System text is a field of its own; the messages begin with the user.
    ("claude", STRICT),
    ("gemini", STRICT),
    # The chat templates of these take one system message, at the front.
    ("mistral", STRICT),
    ("mixtral", STRICT),
    ("codestral", STRICT),
    ("gemma", STRICT),
    ("llama", Shape(user_first=False, system_first=True, paired=False)),
    ("qwen", Shape(user_first=False, system_first=True, paired=False)),
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """The messages, and the place in the history as given of each; -1 for one that was put in."""

    messages: tuple[Message, ...]
    places: tuple[int, ...]


def shape_of(family: str) -> Shape:
    return next((shape for start, shape in SHAPES if family.startswith(start)), STRICT)


def shaped(history: Sequence[Message], family: str) -> Shaped:
    """The history as the family takes it: nothing is lost but a summary whose messages are all there themselves."""
    shape = shape_of(family)
    pairs = _without_needless_summaries(list(enumerate(history)))
    if shape.paired:
        pairs = _paired(pairs)
    if shape.system_first:
        pairs.sort(key=lambda pair: pair[1].role is not Role.SYSTEM)
    first = next((at for at, pair in enumerate(pairs) if pair[1].role is not Role.SYSTEM), None)
    if shape.user_first and first is not None and pairs[first][1].role is not Role.USER:
        pairs.insert(first, (-1, Message(Role.USER, OPENING)))
    return Shaped(tuple(message for _, message in pairs), tuple(place for place, _ in pairs))


def named(history: Sequence[Message]) -> tuple[Message, ...]:
    """The history, where what stands for a missing result was put in before the name of the called tool was known."""
    names = {call.id: call.name for message in history for call in message.tool_calls}
    return tuple(
        replace(message, name=names.get(message.tool_call_id, ""))
        if (message.role, message.content, message.name) == (Role.TOOL, NO_RESULT, "")
        else message
        for message in history
    )


def _without_needless_summaries(pairs: list[tuple[int, Message]]) -> list[tuple[int, Message]]:
    """A summary beside its sources says everything twice, and would be summarized again."""
    held = {message.id for _, message in pairs if message.id}

    def is_needless(message: Message) -> bool:
        return bool(message.summary_of) and held.issuperset(message.summary_of)

    return [pair for pair in pairs if not is_needless(pair[1])]


def _paired(pairs: list[tuple[int, Message]]) -> list[tuple[int, Message]]:
    """A result without a call before it becomes the user's text; a call without a result gets one that says so.

    Results stand right after their call: what was said in between follows them.
    """
    open_calls: dict[str, int] = {}
    answers: dict[int, list[tuple[int, Message]]] = {}
    left: list[tuple[int, Message]] = []
    for place, message in pairs:
        if message.role is Role.TOOL:
            caller = open_calls.pop(message.tool_call_id, None)
            if caller is None:
                left.append((place, _as_text(message)))
            else:
                answers[caller].append((place, message))
            continue
        if message.tool_calls:
            at = len(left)
            answers[at] = []
            open_calls.update((call.id, at) for call in message.tool_calls)
        left.append((place, message))
    result: list[tuple[int, Message]] = []
    for at, (place, message) in enumerate(left):
        result.append((place, message))
        given = answers.get(at, [])
        result += given
        answered = {answer.tool_call_id for _, answer in given}
        for call in message.tool_calls:
            if call.id not in answered:
                result.append((-1, Message(Role.TOOL, NO_RESULT, tool_call_id=call.id, name=call.name)))
    return result


def _as_text(message: Message) -> Message:
    name = f" of {message.name[:80]}" if message.name else ""
    text = f"[result{name} of a tool call that is not in this conversation]\n{message.content}"
    return replace(message, role=Role.USER, content=text, tool_call_id="", name="")
