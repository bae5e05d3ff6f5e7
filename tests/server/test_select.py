"""`haversack/select`: what a document is, its sections, and where in it a question points; the gate before anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run
from hypothesis import given
from hypothesis import strategies as st
from indexing import index, write_tree
from line_builders import make_route

from haversack import pipeline
from haversack.gatherers.sections import clipped, docstring, first_sentence
from haversack.manifest import canonical_hash, version_hash
from haversack.policy.documents import DocumentGate
from haversack.selecting import select
from haversack.text_cache import TextCache
from haversack.token_estimate import by_characters
from haversack.types import (
    DocumentFocus,
    DocumentSelection,
    HaversackError,
    InvalidRequest,
    Kind,
    Message,
    Outcome,
    Policy,
    Position,
    Prompt,
    Purpose,
    Range,
    Request,
    Role,
    Selected,
    Settings,
)
from haversack.workspace import Workspace
from haversack_index.documents import STATEMENTS, Access, values
from haversack_index.reader import IndexReader

WORDS = "These words say what this section is for and are repeated to make it long enough to count. "
GUIDE = "# Guide\n\nHow to use it all.\n\n" + "".join(f"## Part {n}\n\nPart {n}: {WORDS}\n\n" for n in range(9))
MODULE = '''"""Splits budgets. And more of it.

Second paragraph.
"""

import os


class Shelf:
    """Holds what is served. It has room."""

    def put(self, item):
        """Puts it there."""
        return os.sep


# Adds two numbers.
def add(a, b):
    return a + b


TOTAL = add(1, 2)
'''
FILES = {
    "guide.md": GUIDE,
    "src/shelf.py": MODULE,
    "notes.txt": "only words here\n",
    "legal/opinion.md": "# Secret\n\nprivileged words\n",
    "plans/attack.md": "# Attack\n\nstrategy words\n",
    "acme/deal.md": "# Deal\n\nacme words\n",
}
POLICY = Policy(privileged_paths=("legal/",), strategy_paths=("plans/",), tenants=(("acme", ("acme/",)),))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"demo": dict(FILES)}, policy=POLICY)


def ask(
    world: World, document: str, focus: DocumentFocus | None = None, purpose: Purpose = Purpose.AGENT, **changes: object
) -> Selected:
    request = replace(Request(""), document=DocumentSelection(document, focus, purpose), **changes)
    return run(select(request, world.workspace(request)))


def lines(start: int, end: int) -> Range:
    return Range(Position(start, 0), Position(end, 0))


def row_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n")


# --- what is served ---


def test_a_document_is_served_by_the_line_of_every_question(world: World) -> None:
    """Same bundle: blocks, manifest rows and prompt hold the card and the sections, and nothing else."""
    found = ask(world, "guide.md")
    assert [block.kind for block in found.bundle.blocks] == [Kind.DOCUMENT_IDENTITY] + [Kind.SECTION_SUMMARY] * 10
    prompt = found.bundle.prompt.messages[-1].content
    assert all(section.summary in prompt for section in found.sections)
    assert {row.kind for row in found.bundle.manifest.items} == {Kind.DOCUMENT_IDENTITY, Kind.SECTION_SUMMARY}
    assert found.truncated is False


def test_sections_of_prose_are_its_headings(world: World) -> None:
    """Order, kind, heading path and the section's own text, without that of the sections inside it."""
    first, second = ask(world, "guide.md").sections[:2]
    assert (first.order, first.kind, first.heading_path, first.summary) == (
        0,
        "heading",
        ("Guide",),
        "How to use it all.",
    )
    assert (second.id, second.heading_path) == ("Guide/Part 0", ("Guide", "Part 0"))
    assert second.lines == (4, 8)


def test_sections_of_code_are_signatures_with_their_docs(world: World) -> None:
    """Class, method and function; first sentences only, from docstrings and from comments above."""
    found = ask(world, "src/shelf.py")
    assert [(section.id, section.summary) for section in found.sections] == [
        ("Shelf", "class Shelf\nHolds what is served."),
        ("Shelf/put", "def put(self, item)\nPuts it there."),
        ("add", "def add(a, b)\nAdds two numbers."),
    ]


def test_the_card_invents_nothing(world: World) -> None:
    """Title and gist are the document's own words, or nothing."""
    guide, module, notes = (ask(world, name).identity for name in ("guide.md", "src/shelf.py", "notes.txt"))
    assert (guide.title, guide.gist, guide.kind, guide.status) == ("Guide", "How to use it all.", "markdown", "saved")
    assert (module.title, module.gist) == ("Splits budgets.", "Splits budgets. And more of it.")
    assert (notes.title, notes.gist) == (None, "only words here")
    world.write("demo", "bare.py", "def f():\n    return 1\n")
    world.write("demo", "list.md", "# List\n\n- one\n- two\n")
    bare, listed = ask(world, "bare.py"), ask(world, "list.md")
    assert (bare.identity.title, bare.identity.gist) == (None, None)
    assert (listed.identity.title, listed.identity.gist) == ("List", None)
    assert "Gist: not known" in bare.bundle.blocks[0].text


def test_the_open_buffer_is_what_counts(world: World) -> None:
    """Sections of the index are those of the file as it was: a changed buffer is read anew."""
    assert ask(world, "guide.md").identity.generation == 1
    world.open("demo", "guide.md", "# New\n\nfresh\n")
    found = ask(world, "guide.md")
    assert [section.heading_path for section in found.sections] == [("New",)]
    assert (found.identity.status, found.identity.generation) == ("unsaved", None)


def test_a_long_summary_is_cut_and_says_so(world: World) -> None:
    """The setting bounds every item; the mark is on the item itself."""
    small = replace(world, settings=Settings(section_summary_max_tokens=16))
    section = ask(small, "guide.md").sections[1]
    assert section.summary_truncated
    assert section.summary.endswith("…")
    assert by_characters(section.summary) <= 16
    assert not ask(small, "guide.md").sections[0].summary_truncated


@given(st.text(max_size=400), st.integers(16, 60))
def test_a_cut_text_keeps_to_its_limit(text: str, limit: int) -> None:
    """Whatever the text, the head that is left is within the limit, and whole when nothing had to go."""
    head, is_cut = clipped(text, limit)
    assert by_characters(head) <= limit
    assert is_cut or head == text


def test_a_cap_on_sections_keeps_the_nearest(world: World) -> None:
    """Further ones are not looked at, which is told."""
    small = replace(world, settings=Settings(max_sections=3))
    found = ask(small, "guide.md", DocumentFocus(("Guide/Part 5",)))
    assert [section.order for section in found.sections] == [5, 6, 7]
    assert found.truncated
    assert "sections_capped" in {problem.code for problem in found.bundle.problems}


# --- focus ---


def marked(found: Selected) -> list[str]:
    return [section.id for section in found.sections if section.focus]


def test_focus_by_id_and_by_range(world: World) -> None:
    """A click and a drag mark the same section; a selection over a border marks both; the axis is echoed."""
    row = row_of(GUIDE, "Part 3:")
    assert marked(ask(world, "guide.md", DocumentFocus(("Guide/Part 3",)))) == ["Guide/Part 3"]
    found = ask(world, "guide.md", DocumentFocus(range=lines(row, row + 1)))
    assert (marked(found), found.focus) == (["Guide/Part 3"], DocumentFocus(range=lines(row, row + 1)))
    both = DocumentFocus(range=lines(row, row_of(GUIDE, "Part 4:") + 1))
    assert marked(ask(world, "guide.md", both)) == ["Guide/Part 3", "Guide/Part 4"]


def test_a_range_marks_the_innermost_section(world: World) -> None:
    """A line of a method is the method's, one of the class's own is the class's."""
    row = row_of(MODULE, "Puts it there")
    assert marked(ask(world, "src/shelf.py", DocumentFocus(range=lines(row, row + 1)))) == ["Shelf/put"]
    row = row_of(MODULE, "class Shelf")
    assert marked(ask(world, "src/shelf.py", DocumentFocus(range=lines(row, row + 1)))) == ["Shelf"]


def test_a_range_in_no_section_keeps_its_axis(world: World) -> None:
    """Nothing is marked, everything is served, and what was pointed at is still told."""
    row = row_of(MODULE, "TOTAL")
    found = ask(world, "src/shelf.py", DocumentFocus(range=lines(row, row + 1)))
    assert (marked(found), len(found.sections), found.focus is not None) == ([], 3, True)


@pytest.mark.parametrize(
    ("focus", "code", "ids"),
    [
        (DocumentFocus(quote="Part 3:   These\nwords"), None, ["Guide/Part 3"]),
        (DocumentFocus(quote="nowhere to be found"), "quote_not_found", []),
        (DocumentFocus(range=lines(0, 3), quote="Part 3:"), "quote_not_in_range", []),
        (DocumentFocus(("Guide/Part 1",), quote="nowhere"), "quote_not_found", ["Guide/Part 1"]),
        (DocumentFocus(("no such",)), "section_not_found", []),
    ],
)
def test_a_quote_has_to_be_there(world: World, focus: DocumentFocus, code: str | None, ids: list[str]) -> None:
    """Words that are not in the text, or not in the range, are a problem and mark nothing; the axis stays."""
    found = ask(world, "guide.md", focus)
    assert marked(found) == ids
    assert found.focus == focus
    assert [each.code for each in found.bundle.problems if each.stage == "document"] == ([code] if code else [])


def test_truncation_drops_farthest_from_focus_first_and_serves_in_order(world: World) -> None:
    """What is left are the nearest, in the order of the document; the bundle says that others are missing."""
    world.write("demo", "guide.md", GUIDE.replace("# Guide\n\nHow to use it all.\n\n", "").replace("## ", "# "))
    focus = DocumentFocus(("Part 5",))
    whole = ask(world, "guide.md", focus)
    room = whole.bundle.blocks[0].tokens + sum(b.tokens for b in whole.bundle.blocks[4:7]) + 5
    found = ask(world, "guide.md", focus, budget_tokens=room)
    assert [section.id for section in found.sections] == ["Part 4", "Part 5", "Part 6"][: len(found.sections)]
    assert {"Part 5"} < {section.id for section in found.sections}
    assert found.truncated
    assert sum(block.tokens for block in found.bundle.blocks) <= room
    rows = {row.title.split(": ")[1].split(",")[0]: row for row in found.bundle.manifest.items if "Part" in row.title}
    assert rows["Part 0"].outcome is Outcome.EXCLUDED
    assert rows["Part 0"].reasons == ("over budget",)


def test_no_section_is_served_past_a_nearer_one_that_is_missing(world: World) -> None:
    """A short section far away does not take the place of a long one near by."""
    text = "# A\n\nshort\n\n# B\n\nfocus\n\n# C\n\n" + WORDS * 4 + "\n\n# D\n\nshort\n\n# E\n\nshort\n"
    world.write("demo", "mixed.md", text)
    whole = ask(world, "mixed.md", DocumentFocus(("B",)))
    by_id = {section.id: block for section, block in zip(whole.sections, whole.bundle.blocks[1:], strict=True)}
    room = whole.bundle.blocks[0].tokens + sum(by_id[name].tokens for name in "ABDE") + 5
    found = ask(world, "mixed.md", DocumentFocus(("B",)), budget_tokens=room)
    assert [section.id for section in found.sections] == ["A", "B"]


def test_without_a_focus_the_tail_is_dropped(world: World) -> None:
    """Natural order, as every list is read."""
    whole = ask(world, "guide.md")
    room = sum(block.tokens for block in whole.bundle.blocks[:4])
    found = ask(world, "guide.md", budget_tokens=room)
    assert [section.order for section in found.sections] == list(range(len(found.sections)))
    assert 1 <= len(found.sections) <= 3


def test_without_a_focus_a_question_chooses(world: World) -> None:
    """What speaks of the question is served before what comes first in the text."""
    world.write("demo", "two.md", "# Alpha\n\n" + WORDS + "\n\n# Retries\n\nHow retries are handled.\n")
    whole = ask(world, "two.md")
    room = whole.bundle.blocks[0].tokens + whole.bundle.blocks[2].tokens
    found = ask(world, "two.md", budget_tokens=room, text="how are retries handled?")
    assert [section.id for section in found.sections] == ["Retries"]


def test_unused_share_is_lent(world: World) -> None:
    """Sections may use all that the card leaves, not only nine tenths."""
    whole = ask(world, "guide.md")
    room = sum(block.tokens for block in whole.bundle.blocks)
    assert len(ask(world, "guide.md", budget_tokens=room).sections) == len(whole.sections)


@pytest.mark.parametrize("budget", [0, 1, 60])
def test_the_focus_section_and_the_card_survive_a_budget_that_fits_nothing(world: World, budget: int) -> None:
    """Pinned items are bounded one by one, so they stay whatever the budget; nothing else does."""
    found = ask(world, "guide.md", DocumentFocus(("Guide/Part 5",)), budget_tokens=budget)
    assert [block.kind for block in found.bundle.blocks] == [Kind.DOCUMENT_IDENTITY, Kind.SECTION_SUMMARY]
    assert marked(found) == ["Guide/Part 5"]
    assert found.truncated
    taken = sum(block.tokens for block in found.bundle.blocks)
    (problem,) = found.bundle.problems
    assert problem.code == "budget_raised"
    assert f" {taken:,} tokens" in problem.message
    assert f" {budget:,}." in problem.message
    enough = ask(world, "guide.md", DocumentFocus(("Guide/Part 5",)), budget_tokens=taken)
    assert enough.bundle.problems == ()


def test_sections_that_say_the_same_are_both_served(world: World) -> None:
    """Equal words under two headings are two sections, with ids of their own."""
    world.write("demo", "log.md", "# Log\n\n## Fixed\n\nBugs.\n\n## Fixed\n\nBugs.\n")
    assert [section.id for section in ask(world, "log.md").sections] == ["Log", "Log/Fixed", "Log/Fixed~2"]


# --- hash ---


def test_two_quotes_in_one_section_give_two_hashes(world: World) -> None:
    """What is served is the same to the byte, and yet the questions differ."""
    one, two = (ask(world, "guide.md", DocumentFocus(quote=q)) for q in ("Part 3: These", "3: These words"))
    assert one.bundle.prompt == two.bundle.prompt
    assert one.sections == two.sections
    assert one.bundle.version_hash != two.bundle.version_hash


def test_two_ranges_in_no_section_give_two_hashes(world: World) -> None:
    """A bare range tells questions apart as well."""
    row = row_of(MODULE, "TOTAL")
    one, two = (ask(world, "src/shelf.py", DocumentFocus(range=lines(row, row + n))) for n in (0, 1))
    assert one.bundle.prompt == two.bundle.prompt
    assert one.bundle.version_hash != two.bundle.version_hash


def test_a_bundle_without_focus_has_the_hash_it_had() -> None:
    """No focus adds nothing to what is hashed."""
    prompt, route = Prompt((Message(Role.USER, "hi"),), 3), make_route()
    assert version_hash(prompt, route) == version_hash(prompt, route, None)
    assert version_hash(prompt, route) != version_hash(prompt, route, DocumentFocus(quote="x"))
    assert canonical_hash({"a": 1}) != canonical_hash({"a": 1, "focus": None})


# --- the gate ---


@pytest.mark.parametrize(
    ("path", "code"), [("legal/opinion.md", "document_privileged"), ("plans/attack.md", "document_strategy")]
)
def test_what_an_agent_may_not_have_is_refused_before_anything_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    """Neither the text nor a row of the index is asked for; the refusal holds none of its words."""

    def never(*args: object, **kwargs: object) -> object:
        raise AssertionError("read")

    for owner, name in ((TextCache, "load"), (Workspace, "read"), (Workspace, "parsed"), (Workspace, "symbols")):
        monkeypatch.setattr(owner, name, never)
    for name in ("document", "sections", "symbols", "file", "search"):
        monkeypatch.setattr(world.indexes["demo"], name, never, raising=False)
    with pytest.raises(HaversackError) as refusal:
        ask(world, path)
    assert refusal.value.code == code
    assert "words" not in f"{refusal.value.message}{refusal.value.remedy}{refusal.value.details}"


def test_a_strategy_document_may_be_viewed_and_a_privileged_one_may_not(world: World) -> None:
    """A view has no prompt: there is nothing to send to a model by mistake."""
    found = ask(world, "plans/attack.md", purpose=Purpose.VIEW)
    assert found.sections[0].summary == "strategy words"
    assert found.bundle.prompt.messages == ()
    with pytest.raises(HaversackError) as refusal:
        ask(world, "legal/opinion.md", purpose=Purpose.VIEW)
    assert refusal.value.code == "document_privileged"


def test_another_tenants_document_is_refused_as_one_that_is_missing(world: World) -> None:
    """The same bytes, but for the name that was asked for; its own tenant gets it."""
    told: list[tuple[str, str, str, dict[str, object]]] = []
    for path in ("acme/deal.md", "acme/none.md"):
        for tenant in ("", "globex"):
            with pytest.raises(HaversackError) as refusal:
                ask(world, path, tenant=tenant)
            error = refusal.value
            told.append((error.code, error.message.replace(path, "PATH"), error.remedy, error.details))
    assert told == [told[0]] * 4
    assert told[0][0] == "document_not_found"
    assert ask(world, "acme/deal.md", tenant="acme").sections[0].summary == "acme words"


def test_a_policy_that_cannot_be_read_lets_nothing_be_selected(world: World) -> None:
    """Which documents are privileged is then not known."""
    with pytest.raises(HaversackError) as refusal:
        ask(replace(world, policy=replace(POLICY, closed=True)), "guide.md")
    assert refusal.value.code == "document_unjudged"


def test_a_restricted_document_goes_to_no_remote_model(world: World) -> None:
    """The same marks as everywhere: a request that insists on a remote model is refused."""
    private = replace(world, settings=Settings(restricted_paths=("guide.md",)))
    with pytest.raises(HaversackError):
        ask(private, "guide.md", model="openai/gpt-4o")
    assert ask(private, "guide.md").bundle.route.model.local


def test_the_recipe_is_for_selected_documents_alone(world: World) -> None:
    """A question with this recipe would get nothing at all, so it is refused."""
    with pytest.raises(InvalidRequest):
        run(pipeline.run(Request("hello", recipe="document"), world.workspace()))


# --- the statements ---


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> IndexReader:
    folder, cache = tmp_path_factory.mktemp("docs"), tmp_path_factory.mktemp("cache")
    index(write_tree(folder, FILES), cache)
    return IndexReader(folder, cache)


def rows_of(reader: IndexReader, name: str, path: str, access: Access) -> list[tuple[object, ...]]:
    record = reader.file(path)
    assert record is not None
    return reader._rows(STATEMENTS[name], values(path, record.content_hash, access), access)


OPEN = DocumentGate().access()


@pytest.mark.parametrize("name", sorted(STATEMENTS))
@pytest.mark.parametrize("path", ["legal/opinion.md", "plans/attack.md", "acme/deal.md"])
def test_exclusions_are_in_every_statement(reader: IndexReader, name: str, path: str) -> None:
    """Each gives rows for the document while nothing excludes it, and none for who may not have it."""
    gate = DocumentGate.compile(POLICY, ("demo",))
    assert len(rows_of(reader, name, path, OPEN)) > 0
    assert rows_of(reader, name, path, gate.access()) == []
    assert len(rows_of(reader, name, "guide.md", gate.access())) > 0
    viewing = DocumentGate.compile(POLICY, ("demo",), "acme", Purpose.VIEW).access()
    assert (len(rows_of(reader, name, path, viewing)) > 0) is (path != "legal/opinion.md")


def test_a_rule_that_fails_gives_no_rows(reader: IndexReader) -> None:
    """An error in a rule is never read as permission."""

    def broken(path: str) -> bool:
        raise RuntimeError(path)

    with pytest.raises(RuntimeError):
        rows_of(reader, "document", "guide.md", replace(OPEN, is_privileged=broken))
    assert len(rows_of(reader, "document", "guide.md", OPEN)) == 1


def test_a_stale_row_is_never_served(reader: IndexReader) -> None:
    """Every statement wants the hash of the text that is read now."""
    assert reader.document("guide.md", "0" * 32, OPEN) is None
    assert reader.sections("guide.md", "0" * 32, OPEN) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [("    '''One. Two.'''\n", "One."), ('  """\n  One\n  two\n\n  three\n  """', "One two"), ("x = 1\n", "")],
)
def test_documentation_of_python(text: str, said: str) -> None:
    """The first sentence of the literal that a body opens with."""
    assert first_sentence(docstring([f"{line}\n" for line in text.split("\n")])) == said
