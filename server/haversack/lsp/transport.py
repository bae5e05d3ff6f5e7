"""Bytes to messages and back: the base protocol's framing, and the process's own standard streams.

One thread reads whole chunks and cuts as many messages out of each as it holds; one thread writes. The event loop never
waits for a pipe, and ten thousand small messages cost ten thousand small parses instead of thread hops.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Largest body taken. Editors send whole files on open; 64 MiB is far beyond any file that is sent as text.
MAX_BODY = 64 * 1024 * 1024
# Largest header block taken: two short lines are usual.
MAX_HEADER = 8 * 1024
# A length of more digits is no length anybody meant: ten digits are 10 GB, and what is announced has to be read past.
MAX_DIGITS = 10
# Bytes that may wait to be handled before the reader stops reading; the client's pipe then slows the client down.
MAX_WAITING = 2 * MAX_BODY
# Bytes asked for at once: what a Linux pipe holds.
READ_SIZE = 64 * 1024
# Seconds of message handling after which the loop gets to do other things, a quarter of the 20 ms promised for replies.
SLICE = 0.005
# Seconds to wait for the last replies to leave when the process ends.
FLUSH_TIMEOUT = 0.5

_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that are no message. `fatal` means that the next message cannot be found either."""

    reason: str
    fatal: bool = False


class FrameParser:
    """Cuts a byte stream into message bodies; after a broken header it looks for the next `Content-Length`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._need: int | None = None  # length of the body being read
        self._drop = 0  # bytes of an oversized body still to throw away
        self._lost = False  # looking for the next header
        self._dropped = 0

    def feed(self, data: bytes) -> list[bytes | BadFrame]:
        """Take the next bytes of the stream; give every message, and every fault, that is complete with them."""
        self._buffer += data
        found: list[bytes | BadFrame] = []
        while self._step(found):
            pass
        return found

    def _step(self, found: list[bytes | BadFrame]) -> bool:
        """One step on; False when it takes more bytes."""
        if self._drop:
            return self._drop_body()
        if self._lost:
            return self._find_header(found)
        if self._need is None:
            return self._read_header(found)
        if len(self._buffer) < self._need:
            return False
        found.append(bytes(self._buffer[: self._need]))
        del self._buffer[: self._need]
        self._need = None
        return True

    def _read_header(self, found: list[bytes | BadFrame]) -> bool:
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADER)
        if end < 0:
            return len(self._buffer) >= MAX_HEADER and self._lose("header without an end", found)
        lines = bytes(self._buffer[:end]).split(b"\r\n")
        lengths = {line[len(_LENGTH) :].strip() for line in lines if line.lower().startswith(_LENGTH)}
        if not lengths:
            return self._lose("no Content-Length", found)
        del self._buffer[: end + 4]
        length = lengths.pop()
        if lengths:
            return self._lose("several Content-Length headers", found)
        if not length.isdigit() or len(length) > MAX_DIGITS:
            return self._lose("Content-Length is not a length", found)
        if int(length) > MAX_BODY:
            self._drop = int(length)
            found.append(BadFrame(f"message larger than {MAX_BODY} bytes"))
        else:
            self._need = int(length)
        return True

    def _drop_body(self) -> bool:
        part = min(self._drop, len(self._buffer))
        del self._buffer[:part]
        self._drop -= part
        return part > 0

    def _lose(self, reason: str, found: list[bytes | BadFrame]) -> bool:
        self._lost = True
        self._dropped = 0
        found.append(BadFrame(reason))
        return True

    def _find_header(self, found: list[bytes | BadFrame]) -> bool:
        place = bytes(self._buffer).lower().find(_LENGTH)
        if place >= 0:
            del self._buffer[:place]
            self._lost = False
            return True
        gone = max(0, len(self._buffer) - len(_LENGTH))
        del self._buffer[:gone]
        self._dropped += gone
        if self._dropped > MAX_BODY:
            self._dropped = 0
            found.append(BadFrame("no message in the last 64 MiB", fatal=True))
        return False


class Inbox:
    """Hands messages from the reader thread to the event loop, in order, in slices short enough to stay lively."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Callable[[bytes | BadFrame | None], None]) -> None:
        self._loop = loop
        self._receive = receive
        self._waiting: deque[bytes | BadFrame | None] = deque()
        self._size = 0
        self._scheduled = False
        self._lock = threading.Lock()
        self._room = threading.Event()
        self._room.set()

    def put(self, messages: Iterable[bytes | BadFrame | None]) -> None:
        """Called on the reader thread; None is the end of the stream."""
        self._room.wait()
        with self._lock:
            for message in messages:
                self._waiting.append(message)
                self._size += len(message) if isinstance(message, bytes) else 0
            if self._size > MAX_WAITING:
                self._room.clear()
            if self._scheduled or not self._waiting:
                return
            self._scheduled = True
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            self._room.set()

    def _drain(self) -> None:
        stop = time.monotonic() + SLICE
        while True:
            with self._lock:
                if not self._waiting:
                    self._scheduled = False
                    return
                message = self._waiting.popleft()
                self._size -= len(message) if isinstance(message, bytes) else 0
                if self._size <= MAX_WAITING:
                    self._room.set()
            self._receive(message)
            if time.monotonic() > stop:
                self._loop.call_soon(self._drain)
                return


class StdioReader:
    """Reads a file descriptor to its end on a thread of its own."""

    def __init__(self, fd: int, inbox: Inbox) -> None:
        self._fd = fd
        self._inbox = inbox
        self._thread = threading.Thread(target=self._run, name="haversack-stdin", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        parser = FrameParser()
        while True:
            try:
                data = os.read(self._fd, READ_SIZE)
            except OSError:
                data = b""
            if not data:
                self._inbox.put([None])
                return
            found = parser.feed(data)
            if found:
                self._inbox.put(found)


class StdioWriter:
    """Writes messages to a file descriptor on a thread of its own. pygls calls `write` and `close`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="haversack-stdout", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        self._queue.put(data)

    def close(self) -> None:
        """Let what was written leave, but not for long: a client that stopped reading must not hold the process."""
        self._queue.put(None)
        self._thread.join(FLUSH_TIMEOUT)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:  # the client is gone; the reader sees the end of stdin and ends the process
                return


def take_stdio() -> tuple[int, int]:
    """Descriptors for the protocol alone. From then on prints go to stderr, and children get no stdin of ours."""
    stdin, stdout = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - only Windows has it, and only Windows changes line ends in passing

        for descriptor in (stdin, stdout):
            msvcrt.setmode(descriptor, os.O_BINARY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return stdin, stdout
