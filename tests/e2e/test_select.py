"""One selected document against a real server: where a question points in it, and what nobody gets to see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.raw_client import RawClient, serving

pytestmark = pytest.mark.e2e

CANARY = "canary-5d1f"
GUIDE = "# Guide\n\nHow to use it.\n\n## Install\n\nRun the installer twice.\n\n## Retry\n\nIt tries again.\n"
FILES = {
    "guide.md": GUIDE,
    "legal/opinion.md": f"# Opinion\n\n{CANARY} privileged\n",
    "plans/offer.md": f"# Offer\n\n{CANARY} strategy\n",
    "acme/deal.md": f"# Deal\n\n{CANARY} acme\n",
    ".haversack/policy.json": json.dumps(
        {
            "version": 1,
            "documents": {"privilegedPaths": ["legal/"], "strategyPaths": ["plans/"], "tenants": {"acme": ["acme/"]}},
        }
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("home") / "docs"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root.parent / "outside.md").write_text(f"# Outside\n\n{CANARY} outside\n")
    return root


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[RawClient]:
    with serving(folder.parent) as raw:
        raw.initialize(folder)
        raw.wait_ready()
        yield raw
        assert raw.shutdown() == 0


def select(client: RawClient, document: str, **more: Any) -> Any:
    return client.result("select", "haversack/select", {"document": document, **more})


def refused(client: RawClient, document: str, **more: Any) -> Any:
    answer = client.request("select", "haversack/select", {"document": document, **more})
    assert CANARY not in json.dumps(answer)
    return answer["error"]


def lines(start: int, end: int) -> Any:
    return {"start": {"line": start, "character": 0}, "end": {"line": end, "character": 0}}


def marked(found: Any) -> list[str]:
    return [section["id"] for section in found["sections"] if section["focus"]]


def test_a_document_with_its_sections_and_no_focus(client: RawClient) -> None:
    """What it is, from the index; all sections in order, each with its lines; the prompt holds them."""
    found = select(client, "guide.md")
    card = found["identity"]
    assert (card["title"], card["gist"], card["kind"], card["status"]) == (
        "Guide",
        "How to use it.",
        "markdown",
        "saved",
    )
    assert card["generation"] is not None
    assert [section["headingPath"][-1] for section in found["sections"]] == ["Guide", "Install", "Retry"]
    assert found["sections"][1]["range"] == lines(4, 8)
    assert (found["focusAxis"], found["truncated"], found["problems"]) == (None, False, [])
    assert "Run the installer twice." in found["prompt"]["messages"][-1]["content"]
    assert {block["kind"] for block in found["blocks"]} == {"document", "section"}


def test_focus_by_range_and_by_quote(client: RawClient, folder: Path) -> None:
    """Both mark the section and are echoed; with a budget for nothing it stays, which is said."""
    for focus in ({"range": lines(6, 7)}, {"quote": "installer twice"}, {"sectionIds": ["Guide/Install"]}):
        found = select(client, (folder / "guide.md").as_uri(), focus=focus)
        assert marked(found) == ["Guide/Install"]
        assert {name: found["focusAxis"][name] for name in focus} == focus
    small = select(client, "guide.md", focus={"range": lines(6, 7)}, budgetTokens=1)
    assert [section["id"] for section in small["sections"]] == ["Guide/Install"]
    assert (small["truncated"], [problem["code"] for problem in small["problems"]]) == (True, ["budget_raised"])
    astray = select(client, "guide.md", focus={"quote": "not in it"})
    assert (marked(astray), [problem["code"] for problem in astray["problems"]]) == ([], ["quote_not_found"])
    assert len({found["versionHash"] for found in (small, astray, select(client, "guide.md"))}) == 3


def test_the_buffer_of_the_editor_is_what_is_selected(client: RawClient, folder: Path) -> None:
    """Unsaved headings count; the index does not know them."""
    uri = client.open(folder / "guide.md", GUIDE, "markdown")
    typed = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "# Guide\n\n## Typed\n"}]}
    client.notify("textDocument/didChange", typed)
    found = select(client, uri)
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert [section["id"] for section in found["sections"]] == ["Guide", "Guide/Typed"]
    assert (found["identity"]["status"], found["identity"]["generation"]) == ("unsaved", None)
    assert len(select(client, "guide.md")["sections"]) == 3


def test_privileged_documents_are_refused_whole(client: RawClient) -> None:
    """For agents and for people, by path; a bundle without it is none either."""
    for more in ({}, {"purpose": "view"}, {"tenant": "acme"}, {"focus": {"quote": CANARY}}):
        assert refused(client, "legal/opinion.md", **more)["data"]["code"] == "document_privileged"


def test_strategy_documents_may_be_viewed(client: RawClient) -> None:
    """Agents get a refusal; a view has the words and no message that could go to a model."""
    assert refused(client, "plans/offer.md")["data"]["code"] == "document_strategy"
    found = select(client, "plans/offer.md", purpose="view", model="openai/gpt-4o")
    assert found["sections"][0]["summary"] == f"{CANARY} strategy"
    assert (found["prompt"]["messages"], found["route"]["local"]) == ([], True)


def test_another_tenants_document_is_missing_to_the_byte(client: RawClient, folder: Path) -> None:
    """The very bytes of the answer for a document that is not there: nothing tells that this one is."""
    answers: list[str] = []
    for tenant in ("", "globex"):
        params = {"document": "acme/deal.md", "tenant": tenant}
        answers.append(json.dumps(client.request("gone", "haversack/select", params)))
    moved = (folder / "acme").rename(folder / "elsewhere")
    answers.append(json.dumps(client.request("gone", "haversack/select", {"document": "acme/deal.md"})))
    moved.rename(folder / "acme")
    assert answers == [answers[0]] * 3
    assert json.loads(answers[0])["error"]["data"]["code"] == "document_not_found"
    assert select(client, "acme/deal.md", tenant="acme")["sections"][0]["summary"] == f"{CANARY} acme"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("nosuch.md", "document_not_found"),
        ("plans/", "document_not_found"),
        ("../outside.md", "path_outside_workspace"),
        ("/etc/hostname", "path_outside_workspace"),
        ("legal/../../outside.md", "path_outside_workspace"),
    ],
)
def test_unknown_documents_and_places_outside_are_refused(client: RawClient, document: str, code: str) -> None:
    """Each with its code."""
    assert refused(client, document)["data"]["code"] == code


def test_a_link_opens_no_other_door(client: RawClient, folder: Path) -> None:
    """Neither out of the folder nor to a privileged document."""
    (folder / "out.md").symlink_to(folder.parent / "outside.md")
    (folder / "in.md").symlink_to(folder / "legal" / "opinion.md")
    assert refused(client, "out.md")["data"]["code"] == "path_outside_workspace"
    assert refused(client, "in.md")["data"]["code"] == "document_privileged"


def test_the_policy_file_counts_from_the_next_question_on(client: RawClient, folder: Path) -> None:
    """Tightened, it refuses; broken, it lets nothing be selected, and a question gets only a local model."""
    file = folder / ".haversack" / "policy.json"
    before = file.read_text()
    try:
        file.write_text(json.dumps({"version": 1, "documents": {"privilegedPaths": ["guide.md"]}}))
        assert refused(client, "guide.md")["data"]["code"] == "document_privileged"
        file.write_text("{")
        assert refused(client, "guide.md")["data"]["code"] == "document_unjudged"
        asked = {"text": "see @guide.md", "mentions": [{"value": "guide.md"}]}
        assert client.result("closed", "haversack/context", asked)["route"]["local"]
        remote = client.request("closed", "haversack/context", {**asked, "model": "openai/gpt-4o"})
        assert "error" in remote
    finally:
        file.write_text(before)
    assert select(client, "guide.md")["identity"]["title"] == "Guide"
