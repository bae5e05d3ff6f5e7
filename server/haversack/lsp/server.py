"""Starts the language server on stdio or a TCP port, and ends it: on `exit`, at the end of input, with its parent."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from pygls.lsp.server import LanguageServer

from haversack import __version__
from haversack.lsp.dispatch import Dispatcher
from haversack.lsp.handlers import Handlers
from haversack.lsp.processes import is_alive
from haversack.lsp.transport import READ_SIZE, FrameParser, Inbox, StdioReader, StdioWriter, take_stdio
from haversack.outbound import is_loopback
from haversack.session import Session, open_session
from haversack.types import HaversackError

log = logging.getLogger("haversack.lsp")

# Seconds between two looks at the parent: the process must be gone within two seconds of it.
PARENT_INTERVAL = 0.5
# Seconds that workers get to stop before the process ends without waiting for them; they end with it by themselves.
STOP_TIMEOUT = 0.5

# New objects before the collector of cycles looks at the young ones, and looks before it takes in older ones. With
# Python's own 700, 10, 10 it takes a tenth of every answer, and each look at all there is stalls one by 70 ms; answers
# make hardly any cycles, and 10,000 small objects are a megabyte.
COLLECTOR_THRESHOLDS = (10_000, 20, 100)

MakeSession = Callable[[], Session]


def serve_stdio(make_session: MakeSession | None = None) -> NoReturn:
    """Serve one client over stdin and stdout; whatever else prints goes to stderr."""
    stdin, stdout = take_stdio()
    _run(_serve_stdio(stdin, stdout, make_session or open_session))


def serve_tcp(host: str, port: int, *, allow_remote: bool = False, make_session: MakeSession | None = None) -> NoReturn:
    """Serve the first client that connects; port 0 takes a free one. Raises for an address that is not loopback."""
    if not allow_remote and not is_loopback(host):
        raise HaversackError(
            "remote_refused", f"{host} can be reached from other machines.", "Use 127.0.0.1, or add --allow-remote."
        )
    _run(_serve_tcp(host, port, make_session or open_session))


class Connection:
    """One client: a session, its messages, and the code the process ends with."""

    def __init__(self, session: Session) -> None:
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._session = session
        server = LanguageServer("haversack", __version__, protocol_cls=Dispatcher)
        assert isinstance(server.protocol, Dispatcher)
        self.dispatcher = server.protocol
        self.dispatcher.ended = self._end
        self._handlers = Handlers(self.dispatcher, session, self._watch_parent)
        self._parent: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Cancel what runs and stop the session, within `STOP_TIMEOUT`."""
        if self._parent is not None:
            self._parent.cancel()
        self.dispatcher.cancel_all()
        self._handlers.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await self._session.close()

    def _end(self, code: int) -> None:
        if not self.code.done():
            self.code.set_result(code)

    def _watch_parent(self, process: int) -> None:
        self._parent = asyncio.get_running_loop().create_task(self._follow(process))

    async def _follow(self, process: int) -> None:
        while is_alive(process):  # noqa: ASYNC110 - nothing tells of the end of a process that is not ours
            await asyncio.sleep(PARENT_INTERVAL)
        log.warning("ending: the process that started this server is gone")
        self._end(1)


async def _serve_stdio(stdin: int, stdout: int, make_session: MakeSession) -> int:
    connection = Connection(make_session())
    writer = StdioWriter(stdout)
    connection.dispatcher.set_writer(writer)
    StdioReader(stdin, Inbox(asyncio.get_running_loop(), connection.dispatcher.receive)).start()
    code = await connection.code
    await connection.close()
    writer.close()
    return code


async def _serve_tcp(host: str, port: int, make_session: MakeSession) -> int:
    connection = Connection(make_session())
    taken = False

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        if taken:
            writer.close()
            return
        taken = True
        connection.dispatcher.set_writer(writer)  # pyright: ignore[reportArgumentType] - its `write` returns nothing
        parser = FrameParser()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(READ_SIZE):
                for message in parser.feed(data):
                    connection.dispatcher.receive(message)
        connection.dispatcher.receive(None)

    try:
        listener = await asyncio.start_server(client, host, port)
    except OSError as error:
        print(f"haversack: {host}:{port} cannot be listened on: {error.strerror or error}", file=sys.stderr)
        return 1
    name = listener.sockets[0].getsockname()
    where = f"[{name[0]}]" if ":" in name[0] else name[0]
    print(f"haversack: listening on {where}:{name[1]}", file=sys.stderr, flush=True)
    code = await connection.code
    await connection.close()
    writer = connection.dispatcher.writer
    if isinstance(writer, asyncio.StreamWriter):
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await writer.drain()
    return code


def _run(main: Coroutine[Any, Any, int]) -> NoReturn:
    """Run to the end and leave without waiting for threads: one may hang in a read that never returns."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Discreet("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.freeze()  # what is imported stays until the end: no need to look at it again
    code = 1
    try:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        code = loop.run_until_complete(main)
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.stderr.flush()
        os._exit(code)


class _Discreet(logging.Formatter):
    """Logs where an exception came from and of which type it is; its message may quote the user's files."""

    def formatException(self, ei: Any) -> str:
        kind, _, trace = ei
        return "".join(traceback.format_tb(trace)) + (kind.__name__ if kind else "")
