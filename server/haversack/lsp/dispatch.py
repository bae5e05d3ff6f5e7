"""JSON-RPC as the Language Server Protocol wants it: every request is answered exactly once, with the right code.

pygls keeps the typed messages, the requests to the client and progress. What comes in is read, checked and answered
here, because pygls leaves a request without an answer when it cannot be read and puts tracebacks into its errors.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import islice
from typing import Any, cast

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

from haversack.lsp import protocol, wire
from haversack.lsp.from_lsp import MOST_UNKNOWN
from haversack.lsp.json_rpc import Code, Failure, encode, parse, without_halves
from haversack.lsp.transport import BadFrame
from haversack.types import HaversackError, InvalidRequest

log = logging.getLogger("haversack.lsp")

Json = dict[str, Any]
Handler = Callable[..., Any]
"""Takes the typed parameters, for Haversack's own methods also the names of unknown fields; gives the result, or a
coroutine of it. What a handler does before it returns happens before the next message is looked at."""


class State(Enum):
    NEW = "waiting for initialize"
    RUNNING = "running"
    SHUT_DOWN = "shut down"


class Dispatcher(LanguageServerProtocol):
    """One connection. `install` gives it its handlers; `receive` takes every message body."""

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self.state = State.NEW
        self.ended: Callable[[int], None] = _nobody_listens
        self._requests: Mapping[str, Handler] = {}
        self._notifications: Mapping[str, Handler] = {}
        self._running: dict[int | str, asyncio.Task[Any]] = {}

    def install(self, requests: Mapping[str, Handler], notifications: Mapping[str, Handler]) -> None:
        self._requests = requests
        self._notifications = notifications

    # --- in ---

    def receive(self, body: bytes | BadFrame | None) -> None:
        """Handle one message body, one framing fault, or (None) the end of the stream. Never raises."""
        if body is None:
            self._end()
        elif isinstance(body, BadFrame):
            self._fail(None, Failure(Code.PARSE_ERROR, f"Not a message: {body.reason}."))
            if body.fatal:
                log.error("ending: %s", body.reason)
                self.ended(1)
        else:
            try:
                self._route(parse(body))
            except Failure as failure:
                self._fail(None, failure)

    def _route(self, message: object) -> None:
        if isinstance(message, list):
            raise Failure(Code.INVALID_REQUEST, "Batches are not part of the Language Server Protocol.")
        if not isinstance(message, dict):
            raise Failure(Code.INVALID_REQUEST, "A message is an object.")
        fields = cast("Json", message)
        ident = fields.get("id")
        named = isinstance(ident, int | str) and not isinstance(ident, bool)
        if "method" not in fields and named and ("result" in fields or "error" in fields):
            self._take_answer(cast("int | str", ident), fields)
            return
        if "id" in fields and not named:
            raise Failure(Code.INVALID_REQUEST, "An id is an integer or a string.")
        try:
            method = _method(fields)
        except Failure as failure:
            self._fail(ident, failure)
            return
        if "id" in fields:
            self._take_request(cast("int | str", ident), method, fields)
        else:
            self._take_notification(method, fields)

    def _take_request(self, ident: int | str, method: str, fields: Json) -> None:
        try:
            if ident in self._running:
                raise Failure(Code.INVALID_REQUEST, "This id belongs to a request that is still open.")
            self._check_state(method)
            handler = self._requests.get(method)
            if handler is None:
                raise Failure(Code.METHOD_NOT_FOUND, f"No such method: {method[:100]}.")
            result = handler(*self._arguments(method, fields))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises becomes the answer
            self._fail(ident, _failure(error, method))
            return
        if not asyncio.iscoroutine(result):
            self._succeed(ident, method, result)
            return
        task = asyncio.get_running_loop().create_task(result, name=method)
        self._running[ident] = task
        task.add_done_callback(lambda done: self._answer(ident, method, done))

    def _take_notification(self, method: str, fields: Json) -> None:
        if method == lsp.EXIT:
            self.ended(0 if self.state is State.SHUT_DOWN else 1)
        elif method == lsp.CANCEL_REQUEST:
            self._cancel(fields.get("params"))
        elif self.state is State.RUNNING and (handler := self._notifications.get(method)) is not None:
            try:
                handler(*self._arguments(method, fields))
            except Exception as error:  # noqa: BLE001 - a notification has no answer to put it in
                log.warning("notification %s: %s", method, _failure(error, method).message)

    def _cancel(self, params: object) -> None:
        ident = cast("Json", params).get("id") if isinstance(params, dict) else None
        task = self._running.get(ident) if isinstance(ident, int | str) and not isinstance(ident, bool) else None
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        """Cancel every open request; each is answered as cancelled."""
        for task in self._running.values():
            task.cancel()

    def _take_answer(self, ident: int | str, fields: Json) -> None:
        """The client's answer to a request of ours."""
        future = self._request_futures.pop(ident, None)
        result_type = self._result_types.pop(ident, None)
        if future is None or future.done():
            return
        error = fields.get("error")
        if error is not None:
            message = cast("Json", error).get("message") if isinstance(error, dict) else None
            future.set_exception(JsonRpcException(str(message)))
            return
        try:
            answer = self._converter.structure(fields, result_type) if result_type else None
            future.set_result(answer.result if answer is not None else fields.get("result"))
        except Exception:  # noqa: BLE001 - cattrs raises many kinds; the asker hears of it
            future.set_exception(JsonRpcException("The client's answer could not be read."))

    def _check_state(self, method: str) -> None:
        if self.state is State.SHUT_DOWN:
            raise Failure(Code.INVALID_REQUEST, "The server was asked to shut down.")
        if self.state is State.NEW and method != lsp.INITIALIZE:
            raise Failure(Code.SERVER_NOT_INITIALIZED, "The first request must be initialize.")
        if self.state is State.RUNNING and method == lsp.INITIALIZE:
            raise Failure(Code.INVALID_REQUEST, "The server is already initialized.")

    def _arguments(self, method: str, fields: Json) -> tuple[Any, ...]:
        raw = fields.get("params")
        own: type[Any] | None = protocol.params_class(method)
        try:
            if own is not None:
                return wire.read(_present(raw), own), tuple(islice(wire.unknown_fields(raw, own), MOST_UNKNOWN))
            kind = self.get_message_type(method)
            return (self._converter.structure(fields, kind).params if kind else raw,)
        except Failure:
            raise
        except Exception as error:  # noqa: BLE001 - cattrs raises many kinds, RecursionError among them
            place = wire.explain(error, "params" if own else "")
            raise Failure(Code.INVALID_PARAMS, f"{method} does not understand its parameters: {place}.") from None

    # --- out ---

    def _answer(self, ident: int | str, method: str, task: asyncio.Task[Any]) -> None:
        del self._running[ident]
        if task.cancelled():
            self._fail(ident, Failure(Code.REQUEST_CANCELLED, "The request was cancelled."))
        elif (error := task.exception()) is not None:
            self._fail(ident, _failure(error, method))
        else:
            self._succeed(ident, method, task.result())

    def _succeed(self, ident: int | str, method: str, result: object) -> None:
        try:
            self._write(encode({"jsonrpc": "2.0", "id": ident, "result": self._plain(result)}))
        except Exception as error:  # noqa: BLE001 - a result that is no JSON is our bug, the client still needs an answer
            self._fail(ident, _failure(error, method))

    def _fail(self, ident: object, failure: Failure) -> None:
        error: Json = {"code": int(failure.code), "message": failure.message}
        if failure.data is not None:
            error["data"] = failure.data
        try:
            self._write(encode({"jsonrpc": "2.0", "id": ident, "error": error}))
        except (ValueError, TypeError, RecursionError):  # details or an id that cannot travel
            plain = {"code": int(failure.code), "message": without_halves(failure.message)}
            safe = without_halves(ident) if isinstance(ident, str) else ident
            self._write(encode({"jsonrpc": "2.0", "id": safe, "error": plain}))

    def _plain(self, result: object) -> object:
        if type(result).__module__ == protocol.__name__:
            return wire.write(result)
        return self._converter.unstructure(result)

    def _send_data(self, data: Any) -> None:
        """pygls sends its notifications and requests through here."""
        try:
            self._write(encode(self._converter.unstructure(data)))
        except Exception as error:  # noqa: BLE001 - a message that cannot travel is dropped, with a line in the log
            log.error("message to the client not sent: %s", type(error).__name__)

    def _write(self, body: bytes) -> None:
        if self.writer is not None:
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _end(self) -> None:
        self.ended(0 if self.state is State.SHUT_DOWN else 1)


def _method(fields: Json) -> str:
    if fields.get("jsonrpc") != "2.0":
        raise Failure(Code.INVALID_REQUEST, 'A message says "jsonrpc": "2.0".')
    method = fields.get("method")
    if not isinstance(method, str):
        raise Failure(
            Code.INVALID_REQUEST, "A request names its method." if method is None else "A method is a string."
        )
    return method


def _present(raw: object) -> object:
    if raw is None:
        raise Failure(Code.INVALID_PARAMS, "params: missing.")
    return raw


def _failure(error: BaseException, method: str) -> Failure:
    """Any exception as an answer. Of an unexpected one the client gets the type, the log where; neither gets values."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, HaversackError):
        code = Code.INVALID_PARAMS if isinstance(error, InvalidRequest) else Code.REQUEST_FAILED
        data = wire.write(protocol.ErrorData(error.code, error.remedy, error.details))
        return Failure(code, error.message, data)
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed with %s\n%s", method, type(error).__name__, frames)
    return Failure(
        Code.INTERNAL_ERROR, f"Internal error ({type(error).__name__}) in {method}; the server's log says where."
    )


def _nobody_listens(code: int) -> None:
    log.error("connection ended with %d before the server was running", code)
