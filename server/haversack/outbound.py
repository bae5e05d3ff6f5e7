"""The one module that opens a network connection.

Text leaves only to endpoints that the settings name: host and port are pinned, redirects are not followed, proxies
of the environment are not used, and of its credentials only those whose variable the user names.
"""

from __future__ import annotations

import ipaddress
import json as json_text
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from haversack.types import HaversackError, Settings

if TYPE_CHECKING:
    from http.client import HTTPConnection

# A batch of 64 vectors of 4,096 numbers in JSON is about 5 MB; an answer far above is no answer to our question.
MAX_ANSWER = 32_000_000
# What an error answer says is read for its message alone.
MAX_ERROR_TEXT = 4_000


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
    address = urlsplit(url)
    if not any(_is_below(address, urlsplit(endpoint)) for endpoint in endpoints):
        raise HaversackError(
            "endpoint_not_allowed",
            "Haversack only sends text to the endpoints in its settings.",
            "Set haversack.embedding.endpoint, haversack.searchTerms.endpoint or haversack.summarizer.endpoint.",
        )
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
