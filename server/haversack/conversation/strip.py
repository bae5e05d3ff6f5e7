"""The mildest way to shorten an old message: what a tool gave and what was gathered for it become markers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

from haversack.templates.chat import without_context
from haversack.types import Message, Role, ToolCall

# Of code; English has four. Fewer are assumed, so that only what is surely long is left out unopened.
CHARACTERS_A_TOKEN = 3


def stripped(message: Message, tool: str, limit: int) -> Message:
    """The message with long tool text and old context taken out; itself when there is none or nothing is won.

    `tool` is the name of the tool that a result is from; text of up to `limit` characters stays.
    """
    if message.sealed is not None:
        return _stripped_unopened(message, message.sealed.tokens, tool, limit)
    content = message.content
    if message.role is Role.TOOL and len(content) > limit:
        content = _shorter(_result_marker(message, tool), content)
    elif message.role is Role.USER and (found := without_context(content)) is not None:
        n_blocks, question = found
        blocks = "1 block" if n_blocks == 1 else f"{n_blocks} blocks"
        content = _shorter(f"[context left out: {blocks}, gathered anew when needed]\n\n{question}", content)
    calls = tuple(_short_call(call, limit) for call in message.tool_calls)
    if content == message.content and calls == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def _stripped_unopened(message: Message, tokens: int, tool: str, limit: int) -> Message:
    """A long sealed result needs no opening to be left out; what sealed calls were given is not known, so it stays."""
    if message.role is not Role.TOOL or tokens * CHARACTERS_A_TOKEN <= limit:
        return message
    return replace(message, content=f"[result of {tool or 'a tool'} left out: {tokens:,} tokens]", sealed=None)


def _result_marker(message: Message, tool: str) -> str:
    """Which tool, how much, and how to have it again: by the id of its call, or by calling once more."""
    name = (tool or message.name or "a tool")[:80]
    call = f" Call {message.tool_call_id[:80]}:" if message.tool_call_id else ""
    return f"[result of {name} left out: {len(message.content):,} characters.{call} run it again to see it]"


def _short_call(call: ToolCall, limit: int) -> ToolCall:
    """Long strings among the arguments become markers, short ones (a path) stay; the text stays valid JSON."""
    if len(call.arguments) <= limit:
        return call
    whole = json.dumps({"left_out": f"{len(call.arguments):,} characters"})
    try:
        given: object = json.loads(call.arguments)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        # The share of each of a few values; more of them are more than what they say is worth.
        most = limit // 2
        kept = {
            name: value if len(json.dumps(value)) <= most else f"[left out: {len(json.dumps(value)):,} characters]"
            for name, value in cast("dict[str, object]", given).items()
        }
        text = json.dumps(kept, ensure_ascii=False)
        if len(text) <= max(2 * limit, len(whole)):
            return replace(call, arguments=_shorter(text, call.arguments))
    return replace(call, arguments=_shorter(whole, call.arguments))


def _shorter(marker: str, text: str) -> str:
    return marker if len(marker) < len(text) else text
