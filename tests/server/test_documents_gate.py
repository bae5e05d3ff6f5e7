"""Privileged, strategy and other tenants' documents: never read for an agent, never in a prompt, whatever asks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from gathering import FakeIndex, World, run
from line_builders import make_candidate, make_file, make_plan

from haversack import pipeline
from haversack.index_view import VisibleIndex
from haversack.lsp import to_lsp, wire
from haversack.mark import keep_documents, mark
from haversack.policy.documents import CONTESTED, DocumentGate
from haversack.policy.privacy import Privacy
from haversack.text_cache import TextCache
from haversack.types import (
    ActiveDocument,
    Bundle,
    Diagnostic,
    Mention,
    MentionKind,
    Message,
    Policy,
    Position,
    Purpose,
    Reason,
    Request,
    Role,
    Settings,
    Supplied,
)

CANARY = "zebra_canary_91"
CODE = f"def split_budget_{{0}}(total):\n    '''{CANARY} {{0}}'''\n    return total\n"
FILES = {
    "src/open.py": "def split_budget(total):\n    return total\n",
    "legal/opinion.py": CODE.format("privileged"),
    "plans/attack.py": CODE.format("strategy"),
    "acme/deal.py": CODE.format("acme"),
    "globex/deal.py": CODE.format("globex"),
    "README.md": "# Demo\n\nIt splits a budget.\n",
}
POLICY = Policy(
    privileged_paths=("legal/",),
    strategy_paths=("plans/*.py",),
    tenants=(("acme", ("acme/",)), ("globex", ("globex/",))),
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, {"demo": dict(FILES)}, policy=POLICY)


def ask(world: World, request: Request) -> Bundle:
    return run(pipeline.run(request, world.workspace(request)))


def everything(bundle: Bundle, world: World) -> str:
    """All that goes out with a reply."""
    return json.dumps(wire.write(to_lsp.context(bundle, world.snapshot().folders)), ensure_ascii=False)


def test_the_canary_is_there_without_a_policy(world: World) -> None:
    """The questions below do reach these documents when nothing keeps them back."""
    bundle = ask(replace(world, policy=Policy()), Request("how does split_budget work?"))
    assert {block.path for block in bundle.blocks} >= {path for path in FILES if path.endswith(".py")}
    assert CANARY in everything(bundle, world)


@pytest.mark.parametrize("model", ["openai/gpt-4o", "ollama/qwen2.5-coder:7b"])
def test_no_way_of_asking_brings_a_document_that_is_kept_back(world: World, model: str) -> None:
    """Search, symbols, mentions, the open file, edits, diagnostics, supplied text and history: none, with any model."""
    hidden = [path for path in FILES if CANARY in FILES[path]]
    uri = world.open("demo", "legal/opinion.py", CODE.format("typed"), changed=((0, 2),))
    for path in hidden:
        world.diagnostics += (Diagnostic(world.uri("demo", path), Position(1, 0), Position(1, 4), 1, CANARY),)
    request = Request(
        "how does split_budget work, and what do split_budget_privileged and split_budget_acme return?",
        model=model,
        active=ActiveDocument(uri, Position(0, 0)),
        mentions=(
            *(Mention(path) for path in hidden),
            Mention("split_budget_strategy", MentionKind.SYMBOL),
            Mention("legal/"),
            Mention("all", MentionKind.PROBLEMS),
        ),
        supplied=tuple(Supplied(path, "t", CANARY, path, required=True) for path in hidden),
        history=tuple(Message(Role.USER, CANARY, origins=(f"demo/{path}",)) for path in hidden),
    )
    bundle = ask(world, request)
    assert CANARY not in everything(bundle, world)
    assert any(block.path == "src/open.py" for block in bundle.blocks)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("legal/opinion.py", "privileged document"), ("plans/attack.py", "strategy document, for people only")],
)
def test_what_is_kept_back_has_a_row_with_its_reason(world: World, path: str, reason: str) -> None:
    """Named or found by search, the manifest says that it was kept back and why; it carries no text."""
    for mentions in ((), (Mention(path),)):
        bundle = ask(world, Request("how does split_budget work?", mentions=mentions))
        rows = [row for row in bundle.manifest.items if row.path == path]
        assert rows
        assert {row.reasons for row in rows} == {(reason,)}
        assert all(row.tokens_before == row.tokens_after == 0 for row in rows)


def test_another_tenants_document_is_not_there_at_all(world: World) -> None:
    """What is said of it, beside what was asked, is what would be said if there were no such file."""
    request = Request("how does split_budget work?", mentions=(Mention("acme/deal.py"), Mention("acme/")))
    with_it = everything(ask(world, request), world)
    gone = World(world.tmp / "other", {"demo": {path: FILES[path] for path in FILES if "acme" not in path}})
    without_it = everything(ask(replace(gone, policy=POLICY), request), gone)
    assert _said(with_it, world) == _said(without_it, gone)


def _said(reply: str, world: World) -> object:
    raw = json.loads(reply.replace(str(world.tmp), ""))
    items = [(row["id"], row["why"], row["reasons"], row["outcome"]) for row in raw["manifest"]["items"]]
    return sorted(items), raw["problems"], raw["prompt"]["messages"], raw["manifest"]["classification"]


def test_a_tenant_has_its_own_documents_and_no_others(world: World) -> None:
    """The request's tenant opens exactly one door."""
    bundle = ask(world, Request("how does split_budget work?", tenant="acme"))
    paths = {block.path for block in bundle.blocks}
    assert "acme/deal.py" in paths
    assert "globex" not in everything(bundle, world)
    assert not {"legal/opinion.py", "plans/attack.py"} & paths


def test_nothing_that_is_kept_back_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text cache, through which every file is read, is never asked for one."""
    read: list[str] = []
    load = TextCache.load
    monkeypatch.setattr(
        TextCache, "load", lambda self, folder, path, *rest: read.append(path) or load(self, folder, path, *rest)
    )
    ask(world, Request("how does split_budget work?", mentions=tuple(Mention(path) for path in FILES)))
    assert set(read) == {"src/open.py", "README.md"}


def test_a_link_to_a_document_is_the_document(world: World) -> None:
    """An open buffer that the editor calls by a link's name is still the privileged file."""
    (world.tmp / "demo/link.py").symlink_to(world.tmp / "demo/legal/opinion.py")
    uri = world.open("demo", "link.py", CODE.format("typed"), changed=((0, 2),))
    bundle = ask(world, Request("explain link.py", active=ActiveDocument(uri), mentions=(Mention("link.py"),)))
    assert CANARY not in everything(bundle, world)


def test_a_folder_inside_a_folder_does_not_rename_a_document(tmp_path: Path) -> None:
    """`legal/` of the outer folder is kept back as well when it is opened as a folder of its own."""
    world = World(
        tmp_path, {"demo": dict(FILES), "demo/legal": {"opinion.py": CODE.format("privileged")}}, policy=POLICY
    )
    for name in ("opinion.py", "legal/opinion.py"):
        bundle = ask(world, Request("how does split_budget work?", mentions=(Mention(name),)))
        assert CANARY not in everything(bundle, world)


def gate(policy: Policy = POLICY, tenant: str = "", purpose: Purpose = Purpose.AGENT) -> DocumentGate:
    return DocumentGate.compile(policy, ("demo", "demo/inner"), tenant, purpose)


def test_reasons_of_paths_and_origins() -> None:
    """Another tenant's comes first: nothing may tell that it exists. Letter case does not help."""
    both = replace(POLICY, privileged_paths=("legal/", "acme/"))
    assert gate(both).reason("acme/deal.py") is Reason.OUTSIDE
    assert gate(both, "acme").reason("acme/deal.py") is Reason.PRIVILEGED
    assert gate().reason("LEGAL/Opinion.py") is Reason.PRIVILEGED
    assert gate().reason("plans/attack.py") is Reason.STRATEGY
    assert gate(purpose=Purpose.VIEW).reason("plans/attack.py") is None
    assert gate(purpose=Purpose.VIEW).reason("legal/x") is Reason.PRIVILEGED
    assert gate().reason("src/open.py") is None
    assert gate().reason_of_origin("demo/legal/x.py") is Reason.PRIVILEGED
    assert gate().reason_of_origin("demo/inner/legal/x.py") is Reason.PRIVILEGED
    assert gate().reason_of_origin("legal/x.py") is Reason.PRIVILEGED
    assert gate().reason_of_origin("elsewhere/legal/x.py") is Reason.PRIVILEGED
    assert gate().reason("file:///far/away/legal/x.py") is Reason.PRIVILEGED
    assert (
        gate(Policy(privileged_paths=("*.privileged.md",))).reason("file:///far/a.privileged.md") is Reason.PRIVILEGED
    )


def test_two_tenants_that_claim_a_document_both_lose_it() -> None:
    """What is one tenant's alone can't be another's as well, so the mistake opens nothing."""
    policy = Policy(tenants=(("acme", ("shared/",)), ("globex", ("shared/",))))
    assert gate(policy, "acme").owner("shared/x") == CONTESTED
    assert all(gate(policy, tenant).hides("shared/x") for tenant in ("", "acme", "globex"))


@pytest.mark.parametrize("field", ["privileged_paths", "strategy_paths", "tenants"])
def test_a_pattern_that_is_not_understood_counts_for_every_document(field: str) -> None:
    """A typo keeps everything back and says so."""
    bad = ("[",)
    policy = Policy(tenants=(("acme", bad),)) if field == "tenants" else replace(Policy(), **{field: bad})
    closed = gate(policy)
    assert closed.reason("src/open.py") is not None
    assert [problem.code for problem in closed.problems] == ["document_pattern_invalid"]


def test_marks_refuse_by_every_origin() -> None:
    """Text with one line of a privileged file in it is refused, though it calls itself by another name."""
    candidates = [
        make_candidate("a", make_file("src/open.py", folder="demo")),
        make_candidate("b", make_file("legal/x.py", folder="demo")),
        make_candidate("c", text="x", origins=("demo/src/open.py", "demo/legal/x.py")),
        make_candidate("d", text="x", origins=("demo/acme/x.py",)),
    ]
    marked = mark(candidates, make_plan(), Privacy.compile(Settings()), gate())
    assert [item.refused for item in marked] == [(), (Reason.PRIVILEGED,), (Reason.PRIVILEGED,), (Reason.OUTSIDE,)]


def test_history_loses_quotes_of_what_is_kept_back() -> None:
    """For every model; other messages stay as they are, and a problem says how many are gone."""
    messages = (Message(Role.USER, "a", origins=("demo/legal/x",)), Message(Role.USER, "b", origins=("demo/src/x",)))
    kept, problems = keep_documents(messages, gate())
    assert kept[0].content.startswith("[left out")
    assert kept[1] is messages[1]
    assert [problem.code for problem in problems] == ["history_withheld"]
    assert keep_documents(messages[1:], gate()) == (messages[1:], ())


def test_the_index_has_the_same_rules_and_reader() -> None:
    """Each rule in its own place: statements ask them by path."""
    access = gate(tenant="acme", purpose=Purpose.VIEW).access()
    assert access.is_privileged("legal/x")
    assert not access.is_privileged("plans/a.py")
    assert (access.home("plans/a.py"), access.home("legal/x")) == ("strategy", "record")
    assert (access.owner("globex/x"), access.owner("src/x")) == ("globex", "")
    assert (access.tenant, access.viewing) == ("acme", True)


def test_an_origin_without_a_known_folder_is_read_both_ways() -> None:
    """The first name is a folder or it is not; no more than one is left out, and a sound policy has no problems."""
    rules = DocumentGate.compile(Policy(privileged_paths=("/legal/deep",)), ("b", "b/x"))
    assert rules.problems == ()
    assert rules.reason_of_origin("far/legal/deep/x") is Reason.PRIVILEGED
    assert rules.reason_of_origin("far/off/legal/deep/x") is None
    assert rules.reason_of_origin("b/x/legal/deep/x") is Reason.PRIVILEGED
    assert rules.reason_of_origin("README.md") is None


def test_the_snapshot_and_the_request_say_who_reads(world: World) -> None:
    """Without a request an agent of no tenant; the policy's own rules in both cases."""
    nobody = DocumentGate.of(world.snapshot())
    assert (nobody.tenant, nobody.viewing, nobody.folders) == ("", False, ("demo",))
    assert nobody.reason("legal/x") is Reason.PRIVILEGED
    somebody = DocumentGate.of(world.snapshot(), Request("q", tenant="acme"))
    assert (somebody.tenant, somebody.viewing) == ("acme", False)
    assert DocumentGate.of(world.snapshot(), Request("q")).tenant == ""


def test_who_defines_a_name_is_told_without_hidden_files(tmp_path: Path) -> None:
    """A hidden file neither shows nor makes a name look common."""
    files = {"a.py": "def go(): ...\n", "b.py": "def go(): ...\n"}
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    seen = VisibleIndex(FakeIndex(tmp_path, files), lambda path: path == "b.py")
    assert seen.definers(["go", "none"], 1) == {"go": {"a.py"}}
