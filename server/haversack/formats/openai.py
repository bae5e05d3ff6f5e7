"""Messages of OpenAI's chat completions, which most other providers speak as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from haversack.formats.parts import Json, content, fields, items, text
from haversack.types import Image, InvalidRequest, Message, Role, ToolCall

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
# Documented for the models of the gpt-4o family: 85 for `low`; else 85 and 170 for each tile, six for a wide picture.
LOW_DETAIL, HIGH_DETAIL = 85, 1_105


def read(given: object, path: str) -> tuple[Message, ...]:
    listed = cast("Json", given).get("messages") if isinstance(given, dict) else given
    places = ((f"{path}[{at}]", each) for at, each in enumerate(items(listed, path)))
    return tuple(_message(fields(each, place), place) for place, each in places)


def write(messages: Sequence[Message]) -> list[Json]:
    return [_written(message) for message in messages]


def _message(given: Json, path: str) -> Message:
    role = ROLES.get(text(given, "role", path))
    if role is None:
        raise InvalidRequest(f"{path}.role: expected one of {', '.join(ROLES)}.")
    said, images = content(given.get("content"), f"{path}.content", _part)
    places = enumerate(items(given.get("tool_calls") or [], f"{path}.tool_calls"))
    calls = tuple(_call(each, f"{path}.tool_calls[{at}]") for at, each in places)
    if calls and role is not Role.ASSISTANT:
        raise InvalidRequest(f"{path}.tool_calls: only the assistant calls tools.")
    answered = text(given, "tool_call_id", path) if role is Role.TOOL else ""
    return Message(role, said, calls, answered, text(given, "name", path, ""), images=images)


def _part(part: Json, path: str) -> str | Image | None:
    match part.get("type"):
        case "text" | "input_text" | "output_text":
            return text(part, "text", path)
        case "refusal":
            return text(part, "refusal", path)
        case "image_url":
            picture = fields(part.get("image_url"), f"{path}.image_url")
            low = picture.get("detail") == "low"
            return Image(text(picture, "url", f"{path}.image_url"), LOW_DETAIL if low else HIGH_DETAIL)
        case _:
            return None


def _call(given: object, path: str) -> ToolCall:
    call = fields(given, path)
    if call.get("type") == "custom":
        tool = fields(call.get("custom"), f"{path}.custom")
        return ToolCall(text(call, "id", path), text(tool, "name", path), text(tool, "input", path, ""))
    tool = fields(call.get("function"), f"{path}.function")
    return ToolCall(text(call, "id", path), text(tool, "name", path), text(tool, "arguments", path, ""))


def _written(message: Message) -> Json:
    written: Json = {"role": message.role.value, "content": message.content}
    if message.images:
        parts: list[Json] = [{"type": "text", "text": message.content}] if message.content else []
        written["content"] = parts + [_picture(image) for image in message.images]
    if message.name and message.role is not Role.TOOL:
        written["name"] = message.name
    if message.tool_calls:
        written["content"] = written["content"] or None
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.role is Role.TOOL:
        written["tool_call_id"] = message.tool_call_id
    return written


def _picture(image: Image) -> Json:
    detail: Json = {"detail": "low"} if image.tokens == LOW_DETAIL else {}
    return {"type": "image_url", "image_url": {"url": image.reference, **detail}}
