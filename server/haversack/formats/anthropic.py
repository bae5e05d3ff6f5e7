"""Messages of Anthropic's API: two roles, blocks for everything, results of tools inside messages of the user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from haversack.formats.parts import Json, content, fields, items, left_out, text
from haversack.types import Image, InvalidRequest, Message, Role, ToolCall

# Documented: a picture is scaled down to what takes about 1,600 tokens at most.
PICTURE = 1_600
# Blocks that only the model itself can read again; a shortened conversation is not what they were made for.
THOUGHTS = ("thinking", "redacted_thinking")
# A result that is an error begins with this line, and is an error again when it is written.
ERROR = "[error]\n"
FILE = "file:"


def read(given: object, path: str) -> tuple[Message, ...]:
    found: list[Message] = []
    listed = given
    if isinstance(given, dict):
        whole = cast("Json", given)
        found += _system(whole.get("system"), f"{path}.system")
        listed = whole.get("messages")
    for at, raw in enumerate(items(listed, path)):
        found += _messages(fields(raw, f"{path}[{at}]"), f"{path}[{at}]")
    return tuple(found)


def write(messages: Sequence[Message]) -> list[Json]:
    """Without the system messages, which are a field of the request; `system` gives them."""
    written: list[Json] = []
    results: list[Json] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        if message.role is Role.TOOL:
            results.append(_result(message))
            continue
        blocks = _blocks(message)
        # Results come first in the user's message that follows a call, and what the user says may be in it.
        if results:
            joined = message.role is Role.USER and bool(blocks)
            written.append({"role": "user", "content": results + blocks if joined else results})
            results = []
            if joined:
                continue
        plain = not message.tool_calls and not message.images
        written.append({"role": message.role.value, "content": message.content if plain else blocks})
    if results:
        written.append({"role": "user", "content": results})
    return written


def system(messages: Sequence[Message]) -> list[Json]:
    """The field `system` of a request: the system messages, a block each."""
    return [{"type": "text", "text": message.content} for message in messages if message.role is Role.SYSTEM]


def _system(given: object, path: str) -> list[Message]:
    """Each block of the system text is a message of its own."""
    blocks = [given] if isinstance(given, str) else [[block] for block in items(given or [], path)]
    return [Message(Role.SYSTEM, content(block, path, _part)[0]) for block in blocks]


def _messages(given: Json, path: str) -> list[Message]:
    role = text(given, "role", path)
    if role not in ("user", "assistant"):
        raise InvalidRequest(f"{path}.role: expected user or assistant.")
    if isinstance(given.get("content"), str):
        return [Message(Role(role), given["content"])]
    results: list[Message] = []
    calls: list[ToolCall] = []
    rest: list[Json] = []
    for at, raw in enumerate(items(given.get("content"), f"{path}.content")):
        place = f"{path}.content[{at}]"
        block = fields(raw, place)
        match block.get("type"):
            case "tool_result" if role == "user":
                results.append(_answer(block, place))
            case "tool_use" if role == "assistant":
                calls.append(_call(block, place))
            case kind if kind in THOUGHTS:
                continue
            case _:
                rest.append(block)
    said, images = content(rest, f"{path}.content", _part)
    if rest or calls or not results:
        results.append(Message(Role(role), said, tuple(calls), images=images))
    return results


def _answer(block: Json, path: str) -> Message:
    said, images = content(block.get("content"), f"{path}.content", _part)
    text_of = ERROR + said if block.get("is_error") is True else said
    return Message(Role.TOOL, text_of, tool_call_id=text(block, "tool_use_id", path), images=images)


def _call(block: Json, path: str) -> ToolCall:
    arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
    return ToolCall(text(block, "id", path), text(block, "name", path), arguments)


def _part(part: Json, path: str) -> str | Image | None:
    match part.get("type"):
        case "text":
            return text(part, "text", path)
        case "image":
            source = fields(part.get("source"), f"{path}.source")
            match source.get("type"):
                case "base64":
                    kind, data = text(source, "media_type", path), text(source, "data", path)
                    return Image(f"data:{kind};base64,{data}", PICTURE)
                case "file":
                    return Image(FILE + text(source, "file_id", path), PICTURE)
                case _:
                    return Image(text(source, "url", f"{path}.source"), PICTURE)
        case "tool_result" | "tool_use":
            return left_out(part, path)
        case _:
            return None


def _result(message: Message) -> Json:
    said = message.content.removeprefix(ERROR)
    parts: list[Json] = [{"type": "text", "text": said}] if said else []
    result: Json = {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": parts + [_picture(image) for image in message.images] if message.images else said,
    }
    if message.content.startswith(ERROR):
        result["is_error"] = True
    return result


def _blocks(message: Message) -> list[Json]:
    """Text, then pictures, then calls; no block for an empty text, which is refused."""
    blocks: list[Json] = [{"type": "text", "text": message.content}] if message.content else []
    blocks += [_picture(image) for image in message.images]
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)} for call in message.tool_calls
    ]


def _input(call: ToolCall) -> Json:
    """The arguments as an object: what is none, as text under a name of ours."""
    try:
        given: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = call.arguments
    return cast("Json", given) if isinstance(given, dict) else {"arguments": given}


def _picture(image: Image) -> Json:
    head, comma, data = image.reference.partition(";base64,")
    if comma and head.startswith("data:"):
        source: Json = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    elif image.reference.startswith(FILE):
        source = {"type": "file", "file_id": image.reference.removeprefix(FILE)}
    else:
        source = {"type": "url", "url": image.reference}
    return {"type": "image", "source": source}
