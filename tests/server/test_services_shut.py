"""A question that may not leave this machine reaches no service, whatever the settings of the session allow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from e2e.fakes import FakeIndexing, FakeLine
from gathering import World, run

from haversack.gatherers import hybrid
from haversack.policy.confinement import confined, may_embed
from haversack.policy.loading import PolicyFiles
from haversack.session import Session
from haversack.types import Folder, Policy, Request, Settings

FAR = {
    "embedding.provider": "openai",
    "embedding.endpoint": "https://api.example.com/v1",
    "embedding.model": "m",
    "searchTerms.endpoint": "https://words.example.com/v1",
    "searchTerms.model": "m",
}
MADE = Settings(embedder="openai", embedder_endpoint="https://a.example/v1", restricted_paths=("a/",))


@pytest.mark.asyncio
async def test_a_local_question_reaches_no_service(tmp_path: Path) -> None:
    """By its own word or by its own policy; the next question is free again."""
    line = FakeLine()
    asked: list[tuple[Mapping[str, object], bool]] = [
        ({}, True),
        ({"local_only": True}, False),
        ({"policy": {"version": 1, "localOnly": True}}, False),
        ({"policy": {"version": 1, "privacy": {"remote": {"mode": "deny"}}}}, False),
        ({"policy": "no policy at all"}, False),
        ({}, True),
    ]
    async with Session(line=line, indexing=FakeIndexing()) as session:
        session.update_settings(FAR)
        session.add_folder(tmp_path.as_uri(), "ws")
        for more, may in asked:
            given: Any = more
            await session.context(Request("hello", **given))
            workspace = line.workspaces[-1]
            assert bool(workspace.snapshot.settings.terms_endpoint) is may, more
            assert ("ws" not in workspace.words_only) is may, more


def test_an_embedder_is_asked_only_under_the_rules_that_it_was_made_for() -> None:
    """It withholds the files it was told of; one that was made before a rule came does not know the rule."""
    near = Settings(embedder="ollama", embedder_endpoint="http://127.0.0.1:1", embedder_model="m")
    tighter = Settings(embedder="openai", embedder_endpoint=MADE.embedder_endpoint, restricted_paths=("a/", "b/"))
    elsewhere = Settings(embedder="openai", embedder_endpoint="https://b.example/v1", restricted_paths=("a/",))
    assert may_embed(MADE, MADE)
    assert may_embed(tighter, MADE)
    assert may_embed(near, Settings())
    assert not may_embed(MADE, tighter)
    assert not may_embed(MADE, elsewhere)
    assert not may_embed(MADE, Settings())


def test_the_search_says_that_no_embedder_is_asked(tmp_path: Path) -> None:
    world = World(tmp_path, {"ws": {"a.py": "def add_item():\n    pass\n"}})
    workspace = world.workspace()
    workspace.words_only = frozenset({"ws"})
    run(hybrid.gather(world.plan("how does add_item work?"), workspace))
    run(hybrid.gather(world.plan("how does add_item work?"), world.workspace()))
    assert [query.by_meaning for query in world.indexes["ws"].queries] == [False, True]


def test_a_policy_that_was_changed_back_in_time_is_read_again(tmp_path: Path) -> None:
    """Tools that restore times leave the file as old, as long and in the same place as it was."""
    (tmp_path / ".haversack").mkdir()
    path = tmp_path / ".haversack/policy.json"
    path.write_text('{"version": 1, "localOnly": false}')
    files, folder = PolicyFiles(), Folder("ws", tmp_path.as_uri(), str(tmp_path))
    before = os.stat(path)
    assert not files.merged([folder], Settings(), trusted=True).policy.local_only
    path.write_text('{"version": 1, "localOnly":  true}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(path).st_size == before.st_size
    assert files.merged([folder], Settings(), trusted=True).policy.local_only


@pytest.mark.parametrize("service", ["terms", "summarizer"])
def test_a_service_here_that_hands_on_to_another_place_is_shut_too(service: str) -> None:
    """The address is this machine's, and the name of the model says that it runs elsewhere."""
    policy, field = Policy(local_only=True), f"{service}_endpoint"

    def left(model: str) -> str:
        given: dict[str, Any] = {field: "http://127.0.0.1:11434", f"{service}_model": model}
        return getattr(confined(Settings(**given), policy), field)

    assert left("qwen3:480b-cloud") == ""
    assert left("qwen3:8b") == "http://127.0.0.1:11434"
