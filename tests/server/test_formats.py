"""Conversations of OpenAI and Anthropic become ours and theirs again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haversack.formats import READERS, WRITERS, HistoryFormat, anthropic, openai
from haversack.types import Image, InvalidRequest, Message, Role, ToolCall

TEXT = st.text(max_size=40)
NAMES = st.text("abc_", min_size=1, max_size=8)
OBJECTS = st.dictionaries(NAMES, st.one_of(TEXT, st.integers(-9, 9), st.booleans(), st.none()), max_size=3)


@st.composite
def conversations(draw: st.DrawFn, pictures: tuple[Image, ...]) -> tuple[Message, ...]:
    """What both formats can say: texts, pictures, calls with their results, in any number."""
    found: list[Message] = []
    for turn in range(draw(st.integers(0, 5))):
        images = tuple(draw(st.lists(st.sampled_from(pictures), max_size=2)))
        found.append(Message(Role.USER, draw(TEXT), images=images))
        calls = tuple(
            ToolCall(f"t{turn}.{at}", draw(NAMES), json.dumps(draw(OBJECTS), ensure_ascii=False))
            for at in range(draw(st.integers(0, 3)))
        )
        found.append(Message(Role.ASSISTANT, draw(TEXT), calls))
        found += [Message(Role.TOOL, draw(TEXT), tool_call_id=call.id) for call in calls]
    return tuple(found)


OPENAI = (
    Image("https://example.com/a.png", openai.HIGH_DETAIL),
    Image("data:image/png;base64,AA==", openai.LOW_DETAIL),
)
ANTHROPIC = (
    Image("https://example.com/a.png", anthropic.PICTURE),
    Image("data:image/png;base64,AA==", anthropic.PICTURE),
    Image("file:f_1", anthropic.PICTURE),
)


@settings(max_examples=150, deadline=None)
@given(conversations(OPENAI))
def test_openai_both_ways(messages: tuple[Message, ...]) -> None:
    """Written and read again, through JSON, a conversation is the same."""
    written = json.loads(json.dumps(openai.write(messages)))
    assert openai.read(written, "history") == messages
    assert openai.write(openai.read(written, "history")) == written


@settings(max_examples=150, deadline=None)
@given(conversations(ANTHROPIC))
def test_anthropic_both_ways(messages: tuple[Message, ...]) -> None:
    """As above; roles are only two, and no block of text is empty, since the provider refuses those."""
    written = json.loads(json.dumps(anthropic.write(messages)))
    assert anthropic.read(written, "history") == messages
    for message in written:
        assert message["role"] in ("user", "assistant")
        blocks = message["content"] if isinstance(message["content"], list) else []
        assert all(block.get("text") != "" for block in blocks)


def test_a_real_request_of_openai() -> None:
    """Developer text is system text, parts are joined, unknown ones named, empty content is none."""
    request = {
        "model": "gpt-4o",
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_audio", "input_audio": {}}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        ],
    }
    assert openai.read(request, "file") == (
        Message(Role.SYSTEM, "be brief"),
        Message(Role.USER, "a\n[a part of type input_audio left out]"),
        Message(Role.ASSISTANT, "", (ToolCall("c1", "ls", "{}"),)),
        Message(Role.TOOL, "a.py", tool_call_id="c1"),
    )


def test_a_real_request_of_anthropic() -> None:
    """System text in front, thoughts dropped, results before what the user says in the same message, errors kept."""
    request = {
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "list"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "looking"},
                    {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "é"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "no such folder"},
                    {"type": "text", "text": "oh"},
                ],
            },
        ],
    }
    messages = anthropic.read(request, "file")
    assert messages == (
        Message(Role.SYSTEM, "be brief"),
        Message(Role.USER, "list"),
        Message(Role.ASSISTANT, "looking", (ToolCall("c1", "ls", '{"path": "é"}'),)),
        Message(Role.TOOL, "[error]\nno such folder", tool_call_id="c1"),
        Message(Role.USER, "oh"),
    )
    assert anthropic.system(messages) == [{"type": "text", "text": "be brief"}]
    assert anthropic.write(messages)[2] == request["messages"][2]  # type: ignore[index]


def test_arguments_that_are_no_object_become_one() -> None:
    """The provider takes objects alone."""
    for arguments, value in (("[1]", [1]), ("not json", "not json")):
        call = Message(Role.ASSISTANT, "", (ToolCall("c1", "run", arguments),))
        assert anthropic.write([call])[0]["content"][0]["input"] == {"arguments": value}


@pytest.mark.parametrize("form", HistoryFormat)
@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("text", "history"),
        ([1], r"history\[0\]"),
        ([{"role": "robot", "content": ""}], r"history\[0\].role"),
        ([{"role": "user", "content": 5}], r"history\[0\].content"),
        ([{"role": "user", "content": [{"type": "text"}]}], r"history\[0\].content\[0\].text"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(form: HistoryFormat, given: object, path: str) -> None:
    """Neither a guess nor a crash."""
    with pytest.raises(InvalidRequest, match=path):
        READERS[form](given, "history")


def test_our_own_marks_are_ours_alone() -> None:
    """A format without a place for ids and pins gives the message without them."""
    marked = Message(Role.USER, "hi", pinned=True, id="m1")
    for form, write in WRITERS.items():
        assert READERS[form](write([marked]), "history") == (replace(marked, pinned=False, id=""),)
