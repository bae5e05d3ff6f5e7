"""Answers that arrive in pieces: read as they come, and given up the moment that nobody wants the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from haversack import outbound
from haversack.outbound import BadAnswerError, HttpStatusError, stream_json
from haversack.types import HaversackError

pytestmark = pytest.mark.asyncio

OK = b"HTTP/1.1 200 OK\r\n"
EVENTS = OK + b"Content-Type: text/event-stream\r\n\r\n"
LINES = OK + b"Content-Type: application/x-ndjson\r\n\r\n"
Speak = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Endpoint:
    """Reads one request, says what a test wants, then waits until the client has left."""

    def __init__(self, speak: bytes | Speak) -> None:
        self.speak = speak
        self.asked: list[bytes] = []
        self.left = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.asked.append(head + await reader.readexactly(length))
        if isinstance(self.speak, bytes):
            writer.write(self.speak)
            writer.close()
            return
        try:
            await self.speak(writer)
            await reader.read()
        except ConnectionError:
            pass
        self.left.set()
        writer.close()


@asynccontextmanager
async def endpoint(speak: bytes | Speak) -> AsyncIterator[Endpoint]:
    made = Endpoint(speak)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


async def read_all(url: str) -> list[object]:
    async with stream_json(url, {}, {}, 5, endpoints=(url,)) as got:
        return [value async for value in got]


async def values(speak: bytes) -> list[object]:
    async with endpoint(speak) as made:
        return await read_all(made.url)


async def test_the_request_is_plain_http() -> None:
    """The body is JSON with its length, the caller's headers are sent, and the connection is for this call alone."""
    async with endpoint(LINES) as made:
        async with stream_json(f"{made.url}/v1/x?y=1", {"a": "ä"}, {"Key": "k"}, 5, endpoints=(made.url,)) as got:
            assert [value async for value in got] == []
        head, _, body = made.asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\n")
    assert {b"Key: k", b"Connection: close", b"Content-Type: application/json"} <= set(head.split(b"\r\n"))
    assert json.loads(body) == {"a": "ä"}


async def test_events_are_read_until_they_say_done() -> None:
    """Comments and names of events are passed over, `\\r\\n` is a line end too."""
    said = (
        b': hello\nevent: piece\r\ndata: {"t": "\xc3\xa4"}\r\n\r\ndata:{"t": 2}\n\ndata: [DONE]\n\ndata: {"t": 3}\n\n'
    )
    assert await values(EVENTS + said) == [{"t": "ä"}, {"t": 2}]


@pytest.mark.parametrize(
    "said",
    [
        LINES + b'{"a": 1}\n\n{"b": 2}\n',
        LINES + b'{"a": 1}\n{"b": 2}',
        OK + b'Content-Length: 17\r\n\r\n{"a": 1}\n{"b": 2}and more',
        OK + b'Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n{"a":\r\nC\r\n 1}\n{"b": 2}\r\n0\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\n" + LINES + b'{"a": 1}\n{"b": 2}\n',
    ],
)
async def test_one_value_a_line_however_the_end_is_told(said: bytes) -> None:
    """By the connection's end, by a length, in chunks that cut through values, after an interim answer."""
    assert await values(said) == [{"a": 1}, {"b": 2}]


async def test_an_answer_in_one_piece_is_taken_too() -> None:
    """Of an endpoint that does not stream: one value, written over several lines."""
    assert await values(OK + b'\r\n{\n  "a": {\n    "b": 1\n  }\n}\n') == [{"a": {"b": 1}}]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 " + b"9" * 5_000 + b" OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        EVENTS + b"data: {nonsense\n",
        EVENTS + b"data: \xff\n",
        EVENTS + b"data: " + b"[" * 200_000 + b"\n",
        LINES + b"<html>\n",
        OK + b'Content-Length: 100\r\n\r\n{"a": 1}\n',
        OK + b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"a": 1}\n\r\nzz\r\n',
        OK + b'Transfer-Encoding: chunked\r\n\r\n-9\r\n{"a": 1}\n\r\n',
        OK + b'Transfer-Encoding: chunked\r\n\r\n99\r\n{"a": 1}\n',
    ],
)
async def test_broken_answers_are_errors(said: bytes) -> None:
    """No HTTP, no JSON, or less than was announced: as if no usable answer had come."""
    with pytest.raises(BadAnswerError):
        await values(said)


@pytest.mark.parametrize(
    ("limit", "said", "error"),
    [("MAX_STREAM", b'{"a": 1}\n', "answer is larger than 4,000"), ("MAX_LINE", b"x", "a line of .* than 4,000")],
)
async def test_endless_answers_are_errors(limit: str, said: bytes, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many pieces, or of one line without an end."""
    monkeypatch.setattr(outbound, limit, 4_000)

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(LINES)
        while True:
            writer.write(said * 1_000)
            await writer.drain()

    async with endpoint(endless) as made:
        with pytest.raises(BadAnswerError, match=error):
            await read_all(made.url)
        await asyncio.wait_for(made.left.wait(), 5)


async def test_a_refusal_carries_status_body_and_headers() -> None:
    said = b'HTTP/1.1 429 Slow\r\nRetry-After: 3\r\nContent-Length: 9\r\n\r\n{"slow":1}'
    with pytest.raises(HttpStatusError) as caught:
        await values(said)
    assert (caught.value.status, caught.value.body, caught.value.headers["retry-after"]) == (429, '{"slow":1', "3")
    assert "slow" not in str(caught.value)


async def test_redirects_are_not_followed() -> None:
    async with endpoint(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n") as made:
        with pytest.raises(HttpStatusError) as caught:
            async with stream_json(made.url, {}, {}, 5, endpoints=(made.url,)):
                raise AssertionError
        assert (caught.value.status, len(made.asked)) == (302, 1)


@pytest.mark.parametrize("more", ["/../v1", "x", "@evil.example/v1"])
async def test_only_named_endpoints_are_reached(more: str) -> None:
    """Refused before anything is opened."""
    async with endpoint(LINES) as made:
        with pytest.raises(HaversackError) as caught:
            async with stream_json(f"{made.url}/v1{more}", {}, {}, 5, endpoints=(f"{made.url}/v1",)):
                raise AssertionError
        assert (caught.value.code, made.asked) == ("endpoint_not_allowed", [])


async def test_no_header_smuggles_another() -> None:
    async with endpoint(LINES) as made:
        with pytest.raises(BadAnswerError):
            async with stream_json(made.url, {}, {"Key": "k\r\nHost: evil"}, 5, endpoints=(made.url,)):
                raise AssertionError
        assert made.asked == []


async def test_an_endpoint_that_does_not_begin_is_given_up() -> None:
    """The wait is limited, and the connection is closed."""

    async def silent(writer: asyncio.StreamWriter) -> None:
        del writer

    async with endpoint(silent) as made:
        with pytest.raises(TimeoutError):
            async with stream_json(made.url, {}, {}, 0.05, endpoints=(made.url,)):
                raise AssertionError
        await asyncio.wait_for(made.left.wait(), 5)


async def test_a_dead_endpoint_is_an_os_error() -> None:
    with pytest.raises(OSError):
        async with stream_json("http://127.0.0.1:1", {}, {}, 5, endpoints=("http://127.0.0.1:1",)):
            raise AssertionError


@pytest.mark.parametrize("how", ["cancelled", "enough"])
async def test_whoever_wants_no_more_ends_the_call(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled task, or one that has read enough: the endpoint sees the connection go while it still writes."""
    first = asyncio.Event()
    kept: list[object] = []  # else the collector closes what nobody closed
    dial = asyncio.open_connection

    async def open_connection(*args: Any, **more: Any) -> Any:
        kept.append(opened := await dial(*args, **more))
        return opened

    monkeypatch.setattr(asyncio, "open_connection", open_connection)

    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(LINES)
        while True:
            writer.write(b'{"a": 1}\n')
            await writer.drain()
            await asyncio.sleep(0.01)

    async def read(url: str) -> Any:
        async with stream_json(url, {}, {}, 5, endpoints=(url,)) as got:
            async for value in got:
                first.set()
                if how == "enough":
                    return value

    async with endpoint(slow) as made:
        task = asyncio.create_task(read(made.url))
        await asyncio.wait_for(first.wait(), 5)
        if how == "cancelled":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == {"a": 1}
        await asyncio.wait_for(made.left.wait(), 1)
