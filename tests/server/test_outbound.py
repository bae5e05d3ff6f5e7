"""The one door to the network: pinned hosts, no redirects, small JSON answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from haversack import outbound
from haversack.outbound import BadAnswerError, HttpStatusError, post_json, transport
from haversack.types import HaversackError, Settings


class Service(BaseHTTPRequestHandler):
    """Answers by path; remembers what it was asked."""

    seen: list[tuple[str, dict[str, str], bytes]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), body))
        status, answer = {
            "/v1/echo": (200, body),
            "/v1/moved": (302, b""),
            "/v1/busy": (429, b'{"error": "slow down"}'),
            "/v1/html": (200, b"<html>"),
            "/v1/large": (200, b'"' + b"x" * 5_000 + b'"'),
            "/v1/deep": (200, b"[" * 200_000),
        }[self.path.split("?")[0]]
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Retry-After", "3")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def base() -> Iterator[str]:
    Service.seen.clear()
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_json_goes_out_and_comes_back(base: str) -> None:
    """The body is JSON, the caller's headers are sent, the answer is decoded."""
    post = transport(Settings(embedder_endpoint=base))
    assert post(f"{base}/echo", {"a": ["ä"]}, {"Authorization": "Bearer k"}, 5) == {"a": ["ä"]}
    _, headers, body = Service.seen[0]
    assert (headers["Content-Type"], headers["Authorization"]) == ("application/json", "Bearer k")
    assert json.loads(body) == {"a": ["ä"]}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/v1/echo",
        "http://localhost:{port}/v1/echo",
        "https://127.0.0.1:{port}/v1/echo",
        "http://user@127.0.0.1:{port}/v1/echo",
        "http://127.0.0.1:{port}/other",
        "http://127.0.0.1:{port}/v1x/echo",
        "http://127.0.0.1:{port}/v1/../echo",
        "http://127.0.0.1:99999999/v1/echo",
        "file:///etc/passwd",
        "",
    ],
)
def test_only_named_endpoints_are_reached(base: str, url: str) -> None:
    """Another host, port, scheme, path or a user name in front: refused before anything is opened."""
    port = base.split(":")[2].split("/", maxsplit=1)[0]
    with pytest.raises(HaversackError) as caught:
        post_json(url.format(port=port), {}, {}, 5, endpoints=(base,))
    assert caught.value.code == "endpoint_not_allowed"
    assert Service.seen == []


def test_nothing_is_reached_without_an_endpoint(base: str) -> None:
    """Default settings name no endpoint, so no text can leave."""
    with pytest.raises(HaversackError):
        transport(Settings())(f"{base}/echo", {}, {}, 5)
    with pytest.raises(HaversackError):
        transport(Settings(embedder_endpoint="/models/potion"))(f"{base}/echo", {}, {}, 5)


def test_redirects_are_not_followed(base: str) -> None:
    """A redirect is an error, whatever it points at."""
    with pytest.raises(HttpStatusError) as caught:
        post_json(f"{base}/moved", {}, {}, 5, endpoints=(base,))
    assert caught.value.status == 302
    assert len(Service.seen) == 1


def test_a_refusal_carries_status_body_and_headers(base: str) -> None:
    """What the index needs to wait or give up is on the exception, and not in its message."""
    with pytest.raises(HttpStatusError) as caught:
        post_json(f"{base}/busy", {}, {}, 5, endpoints=(base,))
    assert caught.value.status == 429
    assert "slow down" in caught.value.body
    assert caught.value.headers["Retry-After"] == "3"
    assert "slow down" not in str(caught.value)


@pytest.mark.parametrize(("path", "said"), [("html", "not JSON"), ("large", "larger than 4,000"), ("deep", "not JSON")])
def test_unusable_answers_are_errors(base: str, path: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No JSON, too much of it, or endless nesting: an OSError, as if no answer had come."""
    monkeypatch.setattr(outbound, "MAX_ANSWER", 4_000 if path == "large" else 1_000_000)
    with pytest.raises(BadAnswerError, match=said):
        post_json(f"{base}/{path}", {}, {}, 5, endpoints=(base,))


def test_a_dead_endpoint_is_an_os_error() -> None:
    """A refused connection is an OSError."""
    with pytest.raises(OSError):
        post_json("http://127.0.0.1:1/x", {}, {}, 2, endpoints=("http://127.0.0.1:1",))


def test_proxies_of_the_environment_are_not_used(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text goes to the endpoint itself, whatever the environment says."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert post_json(f"{base}/echo", [1], {}, 5, endpoints=(base,)) == [1]
