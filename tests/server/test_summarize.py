"""Summaries by a model: who is asked, what is never sent, and that no failure costs more than the summary."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from gathering import World

from haversack import pipeline
from haversack.compact import Held
from haversack.conversations import Conversations
from haversack.outbound import transport
from haversack.pipeline import Services
from haversack.summarize import AT_ONCE, Endpoint, port_of, write
from haversack.types import (
    Batch,
    Bundle,
    CompactTier,
    HaversackError,
    Message,
    Policy,
    RemoteMode,
    Request,
    Role,
    Settings,
    Snapshot,
)

BATCH = Batch("batch:1", "text to shorten " * 200, 100, 600)
LOCAL = Settings(summarizer="ollama", summarizer_endpoint="http://127.0.0.1:11434", summarizer_model="tiny")


@dataclass
class FakePort:
    """Answers with `answer`, an exception, or never."""

    answer: str | Exception | None = "short"
    remote: bool = False
    name: str = "fake"
    asked: list[str] = field(default_factory=list[str])
    cancelled: bool = False
    seconds: float = 0.0

    async def ask(self, text: str, most: int, seconds: float) -> str:
        self.asked.append(text)
        self.seconds = seconds
        if self.answer is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or ""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "summary_empty"),
        ("word " * 2_000, "summary_too_long"),
        (OSError("secret"), "summary_failed"),
        (HaversackError("no_key", "not set"), "no_key"),
        (None, "summary_late"),
    ],
)
async def test_every_failure_is_a_problem_and_no_more(answer: str | Exception | None, code: str) -> None:
    """Empty, too long, broken or late: no summary, one problem for all batches, and a late call is cancelled."""
    port = FakePort(answer)
    settings = Settings(summarizer_timeout_ms=100)
    async with asyncio.timeout(2):  # far above the deadline of the settings, so that a loaded machine passes
        written, problems = await write((BATCH, replace(BATCH, key="batch:2")), port, settings)
    await asyncio.sleep(0)
    assert written == {}
    assert [problem.code for problem in problems] == [code]
    assert "secret" not in problems[0].message
    assert port.cancelled == (answer is None)
    assert port.seconds == 0.1


@pytest.mark.asyncio
async def test_a_server_that_never_answers_costs_its_deadline_and_no_more() -> None:
    """It takes the call and says nothing: after the time of the settings the problem says that it was late."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = replace(LOCAL, summarizer_endpoint=endpoint, summarizer_timeout_ms=100)
        port = port_of(settings, None, transport(settings))
        assert port is not None
        async with asyncio.timeout(2):
            written, problems = await write((BATCH,), port, settings)
    assert (written, [problem.code for problem in problems]) == ({}, ["summary_late"])


@pytest.mark.asyncio
async def test_a_transport_that_gives_up_is_late() -> None:
    """Whichever clock rings first, that of the connection or that of all batches, the problem is the same."""
    written, problems = await write((BATCH,), FakePort(TimeoutError()), Settings())
    assert (written, [problem.code for problem in problems]) == ({}, ["summary_late"])


@pytest.mark.asyncio
async def test_a_remote_model_gets_no_secret() -> None:
    """Keys in old messages are hidden from it; a model on this machine gets the text as it is."""
    secret = "token = 'ghp_' + x\nghp_q7Zt3Lm9Xw2Rb8Kc5Vn1Hs6Dj4Fg0PyTaUeW\n"
    batch = replace(BATCH, text=secret + BATCH.text)
    far, near, told = FakePort(remote=True), FakePort(), FakePort(remote=True)
    await write((batch,), far, Settings())
    await write((batch,), told, Settings(redact_secrets=False))
    await write((batch,), near, Settings())
    assert "ghp_q7Zt3Lm9" not in far.asked[0]
    assert "ghp_q7Zt3Lm9" in near.asked[0]
    assert "ghp_q7Zt3Lm9" in told.asked[0], "the user's own setting says so"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("provider", "url", "answer"),
    [
        ("ollama", "http://127.0.0.1:11434/api/chat", {"message": {"content": "short"}}),
        ("openai", "http://127.0.0.1:11434/v1/chat/completions", {"choices": [{"message": {"content": "short"}}]}),
    ],
)
async def test_a_server_is_asked_in_its_own_form(provider: str, url: str, answer: object) -> None:
    """Address, model and limit of the answer, with the time that is left."""
    calls: list[tuple[Any, ...]] = []

    def post(*args: Any) -> object:
        calls.append(args)
        return answer

    port = port_of(replace(LOCAL, summarizer=provider), None, post)
    assert isinstance(port, Endpoint)
    assert not port.remote
    assert await port.ask("text", 100, 2.0) == "short"
    (sent,) = calls
    assert (sent[0], sent[1]["model"], sent[3]) == (url, "tiny", 2.0)


def test_who_is_asked_is_a_setting() -> None:
    """The editor's model only where it offers one; `extract` asks nobody; an address elsewhere is remote."""
    editor = FakePort()

    def port(**changes: Any) -> Any:
        return port_of(replace(LOCAL, **changes), editor, lambda *_: None)

    assert port(summarizer="editor") is editor
    assert port_of(Settings(), None, lambda *_: None) is None
    assert port(summarizer="extract") is None
    assert port(summarizer_model="") is None
    assert port(summarizer_endpoint="https://example.com").remote
    assert port(summarizer_model="gpt-oss:120b-cloud").remote, "the service on this machine hands it on"


FILES = {"src/a.py": "x = 1\n"}
LOCAL_MODEL = "ollama/qwen2.5-coder:7b"


def history(n_turns: int = 12) -> tuple[Message, ...]:
    return tuple(
        Message(role, f"turn {at} {role.value} " + "word " * 250)
        for at in range(n_turns)
        for role in (Role.USER, Role.ASSISTANT)
    )


def ask(world: World, request: Request, port: FakePort, keep: Conversations | None = None) -> Bundle:
    conversations = keep or Conversations(lambda settings, editor: port)

    async def answer() -> Bundle:
        workspace = world.workspace()
        bundle = await pipeline.run(request, workspace, Services(conversations=conversations))
        bundle = conversations.remember(request, workspace.snapshot, bundle)
        await asyncio.gather(*conversations._ahead)
        return bundle

    return asyncio.run(answer())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"demo": dict(FILES)}, Settings(context_window=4_000))


def test_old_turns_become_the_models_summaries_and_are_asked_for_once(world: World) -> None:
    """The next turn reuses them, so its prompt begins as the last one did."""
    port = FakePort("the user wants words")
    conversations = Conversations(lambda settings, editor: port)
    first = ask(world, Request("and now?", history=history(), model=LOCAL_MODEL), port, conversations)
    assert first.history.tier is CompactTier.MULTI_CHUNK
    n_asked = len(port.asked)
    longer = (*history(), Message(Role.USER, "and now?"), Message(Role.ASSISTANT, "yes"))
    second = ask(world, Request("so?", history=longer, model=LOCAL_MODEL), port, conversations)
    assert len(port.asked) == n_asked
    assert second.manifest.prefix is not None
    assert second.manifest.prefix.known
    assert second.manifest.prefix.share > 0.8


def test_a_model_that_fails_leaves_the_digest(world: World) -> None:
    """The answer comes all the same, with a problem that says what it had to do without."""
    bundle = ask(world, Request("and now?", history=history(), model=LOCAL_MODEL), FakePort(OSError()))
    assert bundle.history.tier is CompactTier.PLAIN_FALLBACK
    assert {"summary_failed"} == {problem.code for problem in bundle.problems}


def test_a_remote_summarizer_never_sees_a_restricted_message(world: World) -> None:
    """Its batch is a digest made here, and the summary keeps the origin."""
    closed = replace(world, settings=replace(world.settings, restricted_paths=("src/",)))
    secret = replace(history()[0], content="CANARY " * 250, origins=("demo/src/a.py",))
    port = FakePort(remote=True)
    bundle = ask(closed, Request("and now?", history=(secret, *history()[1:]), model=LOCAL_MODEL), port)
    assert port.asked
    assert not any("CANARY" in text for text in port.asked)
    assert "demo/src/a.py" in bundle.history.summaries[0].message.origins


@pytest.mark.parametrize(
    ("request_local", "policy"),
    [
        (True, Policy()),
        (False, Policy(remote_mode=RemoteMode.DENY)),
        (False, Policy(local_only=True)),
        (False, Policy(closed=True)),
    ],
)
def test_where_nothing_may_leave_no_model_elsewhere_is_asked(request_local: bool, policy: Policy) -> None:
    """By the request or by policy; a model on this machine may still be."""
    snapshot = Snapshot((), {}, Settings(), 0.0, policy=policy)
    request = Request("why?", local_only=request_local)
    for remote in (True, False):
        port = FakePort(remote=remote)
        assert Conversations(lambda settings, editor, port=port: port).held(request, snapshot).model is not remote


@pytest.mark.parametrize("ahead", [True, False])
def test_near_the_limit_summaries_are_written_ahead_where_that_is_allowed(world: World, ahead: bool) -> None:
    """In the background, for the next turn."""
    near = replace(world, settings=replace(world.settings, summarize_ahead=ahead))
    port = FakePort()
    bundle = ask(near, Request("and now?", history=history(6), model=LOCAL_MODEL), port)
    assert bundle.history.tier is CompactTier.NONE
    assert bool(port.asked) == (ahead and bundle.history.warning)
    assert bundle.history.warning


@pytest.mark.asyncio
async def test_the_server_gets_the_key_that_the_setting_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bearer token; no setting, no header; a variable that is not set is a problem and nothing is sent."""
    heard: list[str | None] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.headers.get("authorization"))
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"choices": [{"message": {"content": "short"}}]}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    monkeypatch.setenv("TALK_KEY", "k-123")
    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    codes: list[list[str]] = []
    try:
        for variable in ("TALK_KEY", "", "TALK_KEY_THAT_IS_NOT_SET"):
            settings = Settings(
                summarizer="openai",
                summarizer_endpoint=f"http://127.0.0.1:{server.server_port}",
                summarizer_model="tiny",
                summarizer_key_variable=variable,
            )
            port = port_of(settings, None, transport(settings))
            assert port is not None
            written, problems = await write((BATCH,), port, settings)
            codes.append([*(each.text for each in written.values()), *(problem.code for problem in problems)])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert heard == ["Bearer k-123", None]
    assert codes == [["short"], ["short"], ["no_key"]]


@pytest.mark.asyncio
async def test_an_answer_longer_than_what_it_stands_for_is_no_summary() -> None:
    """Also where its tokens would allow for more."""
    batch = replace(BATCH, text="short text", most=600)
    written, problems = await write((batch,), FakePort("a longer text than that"), Settings())
    assert (written, [problem.code for problem in problems]) == ({}, ["summary_too_long"])


@pytest.mark.asyncio
async def test_no_more_than_a_few_are_asked_at_once() -> None:
    """Ten batches, four calls; the others wait for the same deadline and are never sent."""
    port = FakePort(None)
    await write([replace(BATCH, key=f"batch:{n}") for n in range(10)], port, Settings(summarizer_timeout_ms=100))
    assert len(port.asked) == AT_ONCE


@pytest.mark.asyncio
async def test_what_is_written_ahead_runs_once_and_ends_with_the_session(world: World) -> None:
    """A second turn meanwhile starts no second round, and closing cancels the call."""
    workspace = replace(world, settings=replace(world.settings, summarize_ahead=True)).workspace()
    port = FakePort(None)
    conversations = Conversations(lambda settings, editor: port)
    request = Request("and now?", history=history(6), model=LOCAL_MODEL)
    bundle = await pipeline.run(request, workspace, Services(conversations=conversations))
    for _ in range(2):
        conversations.remember(request, workspace.snapshot, bundle)
        await asyncio.sleep(0.01)
    assert bundle.history.ahead
    assert len(port.asked) == len(bundle.history.ahead)
    conversations.close()
    await asyncio.sleep(0.01)
    assert port.cancelled


@pytest.mark.asyncio
async def test_of_many_conversations_the_oldest_leave_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a server that runs for weeks holds no more than a few."""
    monkeypatch.setattr("haversack.conversations.MOST_WRITTEN", 3)
    conversations = Conversations(lambda settings, editor: FakePort())
    batches = [replace(BATCH, key=f"batch:{n}") for n in range(5)]
    for batch in batches:
        await conversations.write((batch,), Held(model=True), Settings())
    held = conversations.held(Request("why?"), Snapshot((), {}, Settings(), 0.0))
    assert list(held.written) == ["batch:2", "batch:3", "batch:4"]
