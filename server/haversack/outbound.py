"""The one module that opens a network connection.

Text leaves only to endpoints that the settings name: host and port are pinned, redirects are not followed, proxies
of the environment are not used, and of its credentials only those whose variable the user names.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json as json_text
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from haversack.types import HaversackError, Settings

if TYPE_CHECKING:
    from http.client import HTTPConnection

# A batch of 64 vectors of 4,096 numbers in JSON is about 5 MB; an answer far above is no answer to our question.
MAX_ANSWER = 32_000_000
# What an error answer says is read for its message alone.
MAX_ERROR_TEXT = 4_000
# A streamed answer is a few hundred tokens; some servers repeat the whole prompt in the last piece.
MAX_STREAM = 4_000_000
MAX_LINE = 1_000_000
MAX_HEADERS = 100
READ_SIZE = 64 * 1024


class HttpStatusError(Exception):
    """The endpoint answered with a status that is not 2xx. `body` is the head of the answer, never to be logged."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"the endpoint answered with status {status}")
        self.status = status
        self.body = body
        self.headers = dict(headers)


class BadAnswerError(OSError):
    """The endpoint answered, but not with JSON of a sensible size."""


Post = Callable[..., Any]
"""`post(url, json, headers, timeout)` as the index wants it."""


def transport(settings: Settings) -> Post:
    """A `post` that reaches the endpoints of these settings and nothing else."""
    endpoints = (settings.embedder_endpoint, settings.terms_endpoint, settings.summarizer_endpoint)

    def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> Any:
        return post_json(url, json, headers, timeout, endpoints=endpoints)

    return post


def post_json(
    url: str, body: object, headers: Mapping[str, str], timeout: float, *, endpoints: Sequence[str]
) -> object:
    """Sends `body` as JSON and gives the decoded answer. `timeout` in seconds, for each wait on the connection.

    Raises HaversackError `endpoint_not_allowed` for an address outside `endpoints`, OSError (TimeoutError,
    ConnectionError, BadAnswerError …) when no usable answer came, HttpStatusError for any status but 2xx.
    """
    address = _allowed(url, endpoints)
    # Loaded at the first call: most sessions never open a connection, and the import costs a tenth of a start.
    from http.client import HTTPException  # noqa: PLC0415

    connection = _connection(address, timeout)
    try:
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        data = json_text.dumps(body).encode()
        connection.request("POST", path, data, {**headers, **_JSON_HEADERS})
        response = connection.getresponse()
        if not 200 <= response.status < 300:  # redirects included: the answer to one would be a host nobody chose
            text = response.read(MAX_ERROR_TEXT).decode("utf-8", "replace")
            raise HttpStatusError(response.status, text, dict(response.getheaders()))
        answer = response.read(MAX_ANSWER + 1)
    except HTTPException as error:
        raise BadAnswerError(f"the endpoint does not speak HTTP ({type(error).__name__})") from error
    finally:
        connection.close()
    if len(answer) > MAX_ANSWER:
        raise BadAnswerError(f"the endpoint's answer is larger than {MAX_ANSWER:,} bytes")
    try:
        return json_text.loads(answer)
    except (ValueError, RecursionError) as error:
        raise BadAnswerError("the endpoint's answer is not JSON") from error


def read_key(variable: str, setting: str) -> str:
    """The key in an environment variable; "" when `setting` names none.

    Raises HaversackError `no_key` when there is none, or what is there cannot be sent. The message holds neither the
    key nor the variable's name, which may be a key in the wrong place.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        message = f"The environment variable that {setting} names is not set where Haversack runs."
        raise HaversackError("no_key", message, "Set it for the editor or the shell that starts Haversack.")
    if not (key.isascii() and key.isprintable()) or " " in key:
        message = f"The environment variable that {setting} names holds no key: it has blanks or other letters in it."
        raise HaversackError("no_key", message, "Correct it.")
    return key


def is_on_this_machine(endpoint: str) -> bool:
    """Whether an address is one of this machine's own, so that what is sent there does not leave it."""
    try:
        return is_loopback(urlsplit(endpoint).hostname or "")
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}


def _allowed(url: str, endpoints: Sequence[str]) -> SplitResult:
    """The address, when it is one of the endpoints or below one. Raises HaversackError `endpoint_not_allowed`."""
    address = urlsplit(url)
    if not any(_is_below(address, urlsplit(endpoint)) for endpoint in endpoints):
        raise HaversackError(
            "endpoint_not_allowed",
            "Haversack only sends text to the endpoints in its settings.",
            "Set haversack.embedding.endpoint, haversack.searchTerms.endpoint or haversack.summarizer.endpoint.",
        )
    return address


def _is_below(address: SplitResult, endpoint: SplitResult) -> bool:
    """The same scheme, host and port, and a path inside the endpoint's."""
    try:
        same = (address.scheme, address.hostname, address.port) == (endpoint.scheme, endpoint.hostname, endpoint.port)
    except ValueError:  # a port that is no number
        return False
    if not same or address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
        return False
    base = endpoint.path.rstrip("/")
    steps = address.path.split("/")
    return ".." not in steps and (address.path == base or address.path.startswith(f"{base}/"))


def _connection(address: SplitResult, timeout: float) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

    host = address.hostname or ""
    if address.scheme == "https":
        return HTTPSConnection(host, address.port, timeout=timeout, context=ssl.create_default_context())
    return HTTPConnection(host, address.port, timeout=timeout)


# --- answers that arrive in pieces ------------------------------------------------------------------------------------


@asynccontextmanager
async def stream_json(
    url: str, body: object, headers: Mapping[str, str], seconds: float, *, endpoints: Sequence[str]
) -> AsyncGenerator[AsyncIterator[object]]:
    """Sends `body` as JSON and gives the JSON values of the answer as they arrive: the data of server-sent events, or
    one value a line. `seconds` is the wait until the answer begins.

    Leaving the block, also by cancellation and at any moment, closes the connection at once. Raises as `post_json`.
    """
    address = _allowed(url, endpoints)
    context = ssl.create_default_context() if address.scheme == "https" else None
    port = address.port or (443 if context else 80)
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    data = json_text.dumps(body).encode()
    own = {"Host": address.netloc, "Connection": "close", "Content-Length": str(len(data)), "Accept": "*/*"}
    sent = {**headers, **_JSON_HEADERS, **own}
    if any(letter in f"{name}{value}{path}" for name, value in sent.items() for letter in "\r\n"):
        raise BadAnswerError("a header or the address holds a line end")
    head = "".join([f"POST {path} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in sent.items()), "\r\n"])
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address.hostname, port, ssl=context, limit=MAX_LINE)
            writer.write(head.encode("latin-1") + data)
            status, answered = await _head(reader)
            lines = _Lines(reader, answered)
            if not 200 <= status < 300:
                raise HttpStatusError(status, await lines.beginning(MAX_ERROR_TEXT), answered)
        events = answered.get("content-type", "").startswith("text/event-stream")
        yield _values(lines, events=events)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, UnicodeError) as error:
        raise BadAnswerError(f"the endpoint's answer broke off ({type(error).__name__})") from error
    finally:
        if writer is not None:
            # No polite close: that would wait for the other side, which may be busy writing what nobody wants.
            writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers, names in small letters; interim answers are passed over."""
    while True:
        words = (await reader.readuntil(b"\n")).split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not re.fullmatch(rb"[0-9]{3}", words[1]):
            raise BadAnswerError("the endpoint does not speak HTTP")
        headers: dict[str, str] = {}
        n_lines = 0
        while line := (await reader.readuntil(b"\n")).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
            n_lines += 1
            if n_lines > MAX_HEADERS:
                raise BadAnswerError("the endpoint's answer has too many headers")
        if int(words[1]) >= 200:
            return int(words[1]), headers


class _Lines:
    """The lines of a body, whichever way its end is told; the last one may lack its end."""

    def __init__(self, reader: asyncio.StreamReader, headers: Mapping[str, str]) -> None:
        self._reader = reader
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length", "")
        told = re.fullmatch("[0-9]{1,12}", length) is not None and not self._chunked
        self._left = int(length) if told else None
        self._buffer = b""
        self._taken = 0

    async def beginning(self, size: int) -> str:
        while len(self._buffer) < size and (data := await self._part()):
            self._buffer += data
        return self._buffer[:size].decode("utf-8", "replace")

    async def __aiter__(self) -> AsyncIterator[str]:
        while data := await self._part():
            *whole, self._buffer = (self._buffer + data).split(b"\n")
            for line in whole:
                yield line.decode("utf-8").removesuffix("\r")
            if len(self._buffer) > MAX_LINE:
                raise BadAnswerError(f"a line of the endpoint's answer is larger than {MAX_LINE:,} bytes")
        if self._buffer:
            yield self._buffer.decode("utf-8")

    async def _part(self) -> bytes:
        """What has arrived, at least a byte; empty at the end."""
        if self._chunked:
            data = await self._chunk()
        else:
            data = b"" if self._left == 0 else await self._reader.read(min(READ_SIZE, self._left or READ_SIZE))
            if self._left is not None:
                if self._left and not data:
                    raise BadAnswerError("the endpoint's answer broke off")
                self._left -= len(data)
        self._taken += len(data)
        if self._taken > MAX_STREAM:
            raise BadAnswerError(f"the endpoint's answer is larger than {MAX_STREAM:,} bytes")
        return data

    async def _chunk(self) -> bytes:
        said = (await self._reader.readuntil(b"\n")).split(b";")[0].strip()
        try:
            size = int(said, 16)
        except ValueError:
            size = -1
        if not 0 <= size <= MAX_STREAM:
            raise BadAnswerError("the endpoint's answer has a chunk of no sensible size")
        data = await self._reader.readexactly(size)
        await self._reader.readuntil(b"\n")
        return data


async def _values(lines: _Lines, *, events: bool) -> AsyncIterator[object]:
    """Of events, the data; else every line is a value. An answer of several lines that is one value is taken too."""
    waiting = ""
    async for line in lines:
        if events:
            name, _, value = line.partition(":")
            if name != "data":  # comments, names of events
                continue
            if value.strip() == "[DONE]":
                return
            yield _decoded(value)
            continue
        waiting += line
        if line.rstrip().endswith("}"):
            try:
                value = _decoded(waiting)
            except BadAnswerError:
                continue
            waiting = ""
            yield value
    if waiting.strip():
        yield _decoded(waiting)


def _decoded(text: str) -> object:
    try:
        return json_text.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadAnswerError("the endpoint's answer is not JSON") from error
