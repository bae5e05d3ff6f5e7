"""The wire's own types: they match the document, read strictly, and write every field."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from e2e.fakes import CANARY, bundle

from haversack.documents import Documents
from haversack.lsp import (
    conversation,
    fim,
    from_lsp,
    memories,
    protocol,
    records,
    sealed_messages,
    supplied_messages,
    to_lsp,
    wire,
)
from haversack.lsp.json_rpc import Code
from haversack.lsp.server import _Discreet
from haversack.lsp.transport import MAX_BODY, BadFrame, FrameParser
from haversack.types import Folder, InvalidRequest, Request
from haversack_index.types import IndexState, IndexStatus

DOCUMENT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
INTERNAL = {protocol.InitializeParams, protocol.WorkspaceFolder}


def documented_fields() -> dict[str, list[str]]:
    sections = re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return {name: re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE) for name, body in sections}


def test_document_names_every_method_and_field() -> None:
    """Names and order of fields, method names and error codes in the document are those of the code."""
    classes = {
        cls
        for module in (protocol, conversation, fim, memories, records, sealed_messages, supplied_messages)
        for cls in vars(module).values()
        if isinstance(cls, type) and attrs.has(cls) and cls not in INTERNAL
    }
    assert documented_fields() == {
        cls.__name__: [wire.camel(field.name) for field in attrs.fields(cls)] for cls in classes
    }
    methods = set(re.findall(r"^\| `(haversack/[\w/]+)`", DOCUMENT, re.MULTILINE))
    assert methods == {*protocol.REQUESTS, *protocol.NOTIFICATIONS}
    assert {int(code) for code in re.findall(r"^\| (-32\d+) \|", DOCUMENT, re.MULTILINE)} == {
        int(code) for code in Code
    }


def test_document_marks_optional_parameters() -> None:
    """A parameter with a default is called optional, one without is not."""
    closed = [cls for cls in vars(supplied_messages).values() if isinstance(cls, type) and attrs.has(cls)]
    for cls in (
        protocol.ContextParams,
        conversation.CompactParams,
        conversation.ProviderMessages,
        protocol.Mention,
        protocol.HistoryMessage,
        protocol.Supplied,
        *closed,
    ):
        section = DOCUMENT.split(f"### {cls.__name__}\n")[1].split("\n#")[0]
        for field in attrs.fields(cls):
            row = next(line for line in section.splitlines() if line.startswith(f"| `{wire.camel(field.name)}` |"))
            assert ("optional" in row) == (field.default is not attrs.NOTHING), row


def test_results_write_every_field_in_camel_case() -> None:
    """A whole bundle goes onto the wire with exactly the documented names."""
    folders = (Folder("ws", "file:///ws", "/ws"),)
    raw = wire.write(to_lsp.context(bundle(Request("hello")), folders))
    fields = documented_fields()
    assert list(raw) == fields["ContextResult"]
    assert list(raw["manifest"]["items"][0]) == fields["ManifestItem"]
    block = raw["blocks"][0]
    assert list(block) == fields["Block"]
    assert block["uri"] == "file:///ws/a.py"
    assert block["range"] == {"start": {"line": 2, "character": 0}, "end": {"line": 9, "character": 0}}
    assert [(span["start"]["line"], span["end"]["line"]) for span in block["ranges"]] == [(2, 5), (8, 9)]
    assert type(block["kind"]) in (str, type(bundle(Request("")).blocks[0].kind))


def test_status_of_several_folders_is_summed() -> None:
    """Counts are added, the state is that of the folder farthest from ready."""
    folders = [Folder(name, f"file:///{name}", f"/{name}") for name in "ab"]
    states = [IndexState.READY, IndexState.INDEXING]
    each = [
        IndexStatus(f.root, state, 2, 3, 4, 5, 6, 7, 8, {"binary": 1}) for f, state in zip(folders, states, strict=True)
    ]
    raw = wire.write(to_lsp.index_status(list(zip(folders, each, strict=True))))
    assert (raw["state"], raw["generation"], raw["files"], raw["skipped"]) == ("indexing", 4, 6, {"binary": 2})
    assert to_lsp.index_status([]).state == "ready"


@pytest.mark.parametrize(
    ("start", "end", "lines"),
    [((2, 0), (4, 0), (2, 4)), ((2, 3), (4, 1), (2, 5)), ((2, 3), (2, 3), (2, 3)), ((4, 1), (2, 0), (2, 5))],
)
def test_mentioned_ranges_are_whole_lines(start: tuple[int, int], end: tuple[int, int], lines: tuple[int, int]) -> None:
    """Each touched line counts; an end before the first character of a line leaves that line out."""
    raw: Any = {"value": "a", "range": {"start": dict(zip(("line", "character"), start, strict=True))}}
    raw["range"]["end"] = dict(zip(("line", "character"), end, strict=True))
    assert from_lsp._whole_lines(wire.read(raw, protocol.Mention).range) == lines


def test_supplied_items_have_ids_of_their_own() -> None:
    """Two of one id would be one row of the manifest, so the second is left out by its place."""
    item = {"id": "1", "title": "t", "text": "x"}
    raw = {"text": "x", "supplied": [item, {**item, "id": "2"}, item]}
    params = wire.read(raw, protocol.ContextParams)
    request = from_lsp.request(params, (), Documents(), lambda name: name)
    assert [each.fault for each in request.supplied] == ["", "", "supplied[2].id: given twice"]
    assert [problem.code for problem in request.problems] == ["malformed_item"]


def test_capabilities_of_any_shape_are_read() -> None:
    """Nonsense in the client's capabilities counts as nothing offered."""
    for nonsense in (
        {},
        {"general": []},
        {"general": {"positionEncodings": 5}},
        {"general": {"positionEncodings": [5]}},
    ):
        assert from_lsp.encoding(nonsense) == "utf-16"
    assert from_lsp.options([]) == (True, {})
    assert from_lsp.options({"trusted": False, "settings": []}) == (False, {})


@pytest.mark.parametrize(
    ("given", "uris"),
    [
        ({"workspaceFolders": [{"uri": "file:///a", "name": "x"}], "rootUri": "file:///b"}, ["file:///a"]),
        ({"workspaceFolders": None, "rootUri": "file:///b", "rootPath": "/c"}, ["file:///b"]),
        ({"rootPath": "/c"}, ["file:///c"]),
        ({"workspaceFolders": []}, []),
        ({}, []),
    ],
)
def test_folders_from_the_newest_way_used(given: dict[str, Any], uris: list[str]) -> None:
    """workspaceFolders, else rootUri, else rootPath."""
    params = wire.read({"capabilities": {}, **given}, protocol.InitializeParams)
    assert [uri for uri, _ in from_lsp.folders(params)] == uris


def test_frames_survive_any_cut() -> None:
    """However the stream is cut, the same messages come out; oversized ones are skipped without being stored."""
    stream = b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: x\r\n\r\nabcContent-Length: 0\r\n\r\n"
    for size in range(1, len(stream)):
        parser = FrameParser()
        found = [frame for at in range(0, len(stream), size) for frame in parser.feed(stream[at : at + size])]
        assert found == [b"{}", b"abc", b""]
    parser = FrameParser()
    assert parser.feed(b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1)) == [
        BadFrame(f"message larger than {MAX_BODY} bytes")
    ]
    for _ in range(64):
        assert parser.feed(bytes(1024 * 1024)) == []
        assert len(parser._buffer) == 0
    assert parser.feed(b"\0Content-Length: 1\r\n\r\n7") == [b"7"]


def test_s11_log_has_no_words_of_exceptions() -> None:
    """An exception in the log shows where it came from and its type, and not its message."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(_Discreet("%(message)s"))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    try:
        raise ValueError(CANARY)
    except ValueError:
        logger.exception("failed")
    assert "test_protocol.py" in output.getvalue()
    assert "ValueError" in output.getvalue()
    assert output.getvalue().count(CANARY) == 0


def test_a_stream_without_messages_is_given_up() -> None:
    """After 64 MiB without a header the reader says that it is lost for good, and has kept none of it."""
    parser = FrameParser()
    faults = [fault for _ in range(70) for fault in parser.feed(b"x" * 1024 * 1024)]
    assert [fault.fatal for fault in faults if isinstance(fault, BadFrame)] == [False, True]
    assert len(parser._buffer) < 100


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("mentions", [{"value": "a"}] * 1_001, "params.mentions: 1,001 items"),
        ("history", [{"role": "user", "content": "x"}] * 20_001, "params.history: 20,001 items"),
        ("mentions", [{"value": "a"}, {"value": "x" * 4_097}], "params.mentions[1].value: 4,097 characters"),
        ("workspaceFolder", "x" * 4_097, "params.workspaceFolder: 4,097 characters"),
    ],
)
def test_more_than_a_request_may_bring_is_refused_by_name(field: str, value: object, named: str) -> None:
    """A broken client is told which field is too much, and its text does not come back."""
    params = wire.read({"text": "q", field: value}, protocol.ContextParams)
    with pytest.raises(InvalidRequest) as refused:
        from_lsp.request(params, (), Documents(), lambda name: name)
    assert str(refused.value).startswith(named)
    assert len(str(refused.value)) < 200
