"""What of a selected document leaves this machine: no secret, and nothing that agents may not have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gathering import World, run

from haversack import local_index
from haversack.indexing import withheld_patterns
from haversack.local_index import embedder_spec
from haversack.lsp import to_lsp, wire
from haversack.pipeline import run as run_line
from haversack.policy.confinement import confined
from haversack.selecting import select
from haversack.types import (
    DocumentFocus,
    DocumentSelection,
    Mention,
    Outcome,
    Policy,
    RemoteMode,
    Request,
    Selected,
    Settings,
)

KEY = "AKIA" + "Q3EGRN7TWY2LKZ5M"
REMOTE, LOCAL = "openai/gpt-4o", "ollama/qwen2.5-coder:7b"
FAR = Settings(embedder="openai", embedder_endpoint="https://api.example.com/v1", embedder_model="m")
KEPT = Policy(privileged_paths=("legal/",), strategy_paths=("plans/*.md",), tenants=(("acme", ("acme/",)),))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        tmp_path, {"demo": {"guide.md": f"# Guide\n\nHow to use it.\n\n## Access\n\nThe key is {KEY} here.\n"}}
    )


def ask(world: World, model: str, focus: DocumentFocus | None = None) -> Selected:
    request = Request("", model=model, document=DocumentSelection("guide.md", focus))
    return run(select(request, world.workspace(request)))


def everything(found: Selected, world: World) -> str:
    return json.dumps(wire.write(to_lsp.selected(found, world.snapshot().folders)))


def test_a_secret_in_a_section_goes_to_no_remote_model(world: World) -> None:
    """Neither the prompt nor `sections` has it, the row says that it was hidden; a local model reads what is there."""
    found = ask(world, REMOTE)
    section = found.sections[1]
    assert KEY not in everything(found, world)
    assert section.summary == found.bundle.blocks[2].text.removesuffix("\n")
    assert section.summary.startswith("The key is [redacted")
    row = next(row for row in found.bundle.manifest.items if row.id.endswith(":section:Guide/Access"))
    assert row.outcome is Outcome.REDACTED
    local = ask(world, LOCAL)
    assert KEY in local.sections[1].summary
    assert KEY in local.bundle.prompt.messages[-1].content


@pytest.mark.parametrize(
    "text",
    [
        f"# Guide {KEY}\n\nHow to use it.\n\n## Access\n\nWords.\n",
        f"# Guide\n\nIt has {KEY} in its gist.\n\n## Access {KEY}\n\nWords.\n",
        f"# Guide\n\n## Access {KEY}\n\n### Deep\n\nWords.\n",
    ],
)
def test_a_secret_in_a_heading_or_the_card_goes_to_no_remote_model(world: World, text: str) -> None:
    """Title, gist, heading path and id: none of them, in any row; the id still points at its section."""
    world.write("demo", "guide.md", text)
    found = ask(world, REMOTE)
    assert KEY not in everything(found, world)
    last = found.sections[-1]
    again = ask(world, REMOTE, DocumentFocus((last.id,)))
    assert [section.order for section in again.sections if section.focus] == [last.order]
    assert KEY in everything(ask(world, LOCAL), world)


def test_documents_kept_from_agents_go_to_no_embedding_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that embeds gets their patterns; a service on this machine may have them, as search does not tell."""

    def transport(settings: Settings) -> object:
        def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
            del url, headers, timeout
            return {"data": [{"index": at, "embedding": [1.0, 0.0]} for at, _ in enumerate(json["input"])]}

        return post

    monkeypatch.setattr(local_index, "transport", transport)
    embedder: Any = embedder_spec(confined(FAR, KEPT)).load()
    assert embedder.withholds("legal/deep/opinion.md")
    assert embedder.withholds("plans/offer.md")
    assert not embedder.withholds("guide.md")
    near = replace(FAR, embedder_endpoint="http://127.0.0.1:11434/v1")
    assert withheld_patterns(confined(near, KEPT)) == []


@pytest.mark.parametrize("policy", [replace(KEPT, closed=True), replace(KEPT, remote_mode=RemoteMode.DENY)])
def test_a_policy_that_rules_services_out_leaves_none(policy: Policy) -> None:
    """With a policy that cannot be read, nobody knows which documents are privileged."""
    assert confined(FAR, policy).embedder == "static"


def test_a_document_kept_back_has_one_reason_with_a_remote_model(world: World) -> None:
    """It is privileged for every model: that no remote one may read it says nothing more, and forces no local one."""
    world.write("demo", "legal/opinion.md", "# Opinion\n\nwords\n")
    settings = confined(Settings(), KEPT)
    request = Request("see @legal/opinion.md", model=REMOTE, mentions=(Mention("legal/opinion.md"),))
    bundle = run(run_line(request, replace(world, settings=settings, policy=KEPT).workspace(request)))
    assert not bundle.route.model.local
    assert {row.reasons for row in bundle.manifest.items if row.path == "legal/opinion.md"} == {
        ("privileged document",)
    }


def test_one_document_never_answers_for_another(tmp_path: Path) -> None:
    """Two of one length, asked alike in one workspace, and the first again: each gets its own words and hash."""
    texts = {f"{name}.md": f"# {name}\n\nHow the {name} is used.\n" for name in ("ship", "mill")}
    workspace = World(tmp_path, {"demo": texts}).workspace()

    def select_one(path: str) -> Selected:
        return run(select(Request("", model=LOCAL, document=DocumentSelection(path)), workspace))

    ship, mill, again = (select_one(path) for path in ("ship.md", "mill.md", "ship.md"))
    assert "mill" in str(mill.bundle.blocks)
    assert "ship" not in str(mill.bundle.blocks)
    assert ship.bundle.version_hash != mill.bundle.version_hash
    assert (again.bundle.version_hash, again.sections) == (ship.bundle.version_hash, ship.sections)
