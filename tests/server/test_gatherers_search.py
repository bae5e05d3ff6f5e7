"""Search and symbols: outlines for breadth, definitions for depth, always in today's text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, lines_of, run

from haversack.gatherers import hybrid, symbols
from haversack.gatherers import outline as outlines
from haversack.gatherers.outline import outline, shrinking, speaking_spans
from haversack.gatherers.overview import kind_of
from haversack.lines import merged
from haversack.types import ActiveDocument, Candidate, Detail, Form, Kind, Position, Range, Request, Settings
from haversack_index.chunk import parse_file
from haversack_index.types import Tier

BODY = "".join(f"    step_{i} = {i}\n" for i in range(30))
CORE = f'''class Context:
    """Holds the state."""

    def invoke(self, callback):
        """Call the callback with parameters."""
{BODY.replace("    ", "        ")}
        return callback()

    def close(self):
{BODY.replace("    ", "        ")}
        return None
'''
USER = f"""from core import Context


def run_command(name):
    context = Context()
{BODY}
    return context.invoke(name)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    files = {
        "core.py": CORE,
        "user.py": USER,
        "notes.txt": "callback parameters are described here\n",
        "README.md": "# Project\n\nA thing.\n",
        "pyproject.toml": "[project]\nname = 'x'\n",
        "src/app/__main__.py": "def main():\n    return 1\n",
        "tests/main.py": "def main():\n    return 2\n",
        "docs/architecture.md": "# Layers\n",
    }
    return World(tmp_path, {"ws": files})


def search(world: World, text: str, **changes: object) -> tuple[tuple[Candidate, ...], list[str]]:
    candidates, problems = run(hybrid.gather(world.plan(text, **changes), world.workspace()))
    return candidates, [problem.code for problem in problems]


def test_every_file_found_gives_an_outline_and_its_hits(world: World) -> None:
    """An outline for the file, whole definitions with signatures for the hits, ranks shared by both."""
    candidates, problems = search(world, "invoke the callback with parameters")
    assert problems == []
    outlines = [each for each in candidates if each.kind is Kind.OUTLINE]
    codes = [each for each in candidates if each.kind is Kind.CODE]
    assert {each.file_rank for each in outlines} == set(range(len(outlines)))
    core = next(each for each in outlines if each.title == "core.py")
    assert "class Context:\n" in lines_of(core, "outline")
    assert "    def invoke(self, callback):\n" in lines_of(core, "outline")
    assert "step_3" not in lines_of(core, "outline")
    hit = next(each for each in codes if each.title.startswith("core.py"))
    assert hit.file_rank == core.file_rank
    assert lines_of(hit, "full") == CORE
    assert "return callback()" in lines_of(hit, "spans")
    assert "return None" not in lines_of(hit, "spans")
    assert lines_of(hit, "signature").count("def ") == 2
    assert "return callback()" not in lines_of(hit, "signature")
    assert hit.relevance == hit.parts[0][1]
    assert 0 < hit.relevance <= 1


def test_beyond_the_file_limit_only_outlines_remain(tmp_path: Path) -> None:
    """The setting caps the files shown with code; breadth stays, and each row says what is held back."""
    files = {f"m{i:02}.py": f"def handler_{i}():\n    return 'zebra {i}'\n" for i in range(20)}
    world = World(tmp_path, {"ws": files}, settings=Settings(max_files=3))
    candidates, _ = search(world, "where is zebra handled")
    assert len({each.title.split()[0] for each in candidates if each.kind is Kind.CODE}) == 3
    outlines = sorted((each for each in candidates if each.kind is Kind.OUTLINE), key=lambda each: each.file_rank)
    assert len(outlines) == 20
    said = "; past the limit of 3 files, 1 hit held back"
    assert [each.why.endswith(said) for each in outlines] == [False] * 3 + [True] * 17


def test_settings_reach_the_search(world: World) -> None:
    """Result count and weights are the user's."""
    world.settings = Settings(top_k=1, vector_weight=0.2, text_weight=0.8, max_files=90)
    search(world, "why do callback parameters fail in the tests")
    query = world.indexes["ws"].queries[-1]
    assert (query.hits_per_file, query.vector_weight, query.text_weight, query.max_files) == (1, 0.2, 0.8, 90)
    assert query.tests_wanted


def test_unsaved_text_is_searched(world: World) -> None:
    """A word that exists only in the buffer is found, in the buffer's lines, marked as unsaved."""
    world.open("ws", "user.py", "def zebra_walk():\n    return 1\n")
    candidates, _ = search(world, "where is zebra_walk")
    found = next(each for each in candidates if each.kind is Kind.CODE and each.title.startswith("user.py"))
    assert "zebra_walk" in lines_of(found, "full")
    assert "unsaved" in found.flags


def test_a_stale_hit_is_moved_and_a_lost_one_is_told(world: World) -> None:
    """The index may lag behind: what moved is served from its new lines, what is gone is a problem."""
    world.write("ws", "core.py", "import os\n\n\n" + CORE)
    (world.tmp / "ws" / "notes.txt").unlink()
    candidates, problems = search(world, "invoke the callback with parameters")
    hit = next(each for each in candidates if each.kind is Kind.CODE and each.title.startswith("core.py"))
    assert "class Context:\n" in lines_of(hit, "full")
    assert "stale-index" in hit.flags
    assert problems == ["gone"]
    assert not any(each.title.startswith("notes.txt") for each in candidates)


def test_broad_questions_bring_overview_files(world: World) -> None:
    """README, notes, manifest and entry points come for a question on the whole, tests' entry points do not."""
    candidates, _ = search(world, "what does this project do?")
    found = [each.title for each in candidates if each.kind is Kind.OVERVIEW]
    assert found == ["README.md", "docs/architecture.md", "pyproject.toml", "src/app/__main__.py"]
    assert not [each for each in search(world, "invoke the callback")[0] if each.kind is Kind.OVERVIEW]


def test_questions_on_building_and_testing_bring_guides_and_build_files(tmp_path: Path) -> None:
    """Of a long guide the part with the command, not its beginning."""
    guide = "# Guide\n\n" + "Be kind to each other.\n" * 90 + "\n## Running tests\n\nRun `make check`.\n"
    files = {"CONTRIBUTING.md": guide, "Makefile": "check:\n\tpytest\n", "README.md": "# It\n", "a.py": "x = 1\n"}
    candidates, _ = search(World(tmp_path, {"ws": files}), "how do I run the tests?")
    found = {each.title: each for each in candidates if each.kind is Kind.OVERVIEW}
    assert list(found) == ["CONTRIBUTING.md", "Makefile", "README.md"]
    assert found["CONTRIBUTING.md"].forms[1].spans[0][0] > 80


def test_a_reason_names_what_the_best_passage_was_found_by(world: World) -> None:
    """Not that there was a passage."""
    reasons = {each.why for each in search(world, "invoke the callback")[0]}
    assert reasons
    assert not [why for why in reasons if "chunk" in why or "further" in why or "keyword" in why or "vector" in why]


def test_one_readme_speaks_for_the_project(tmp_path: Path) -> None:
    """Another one is that of some folder."""
    files = {"README.md": "# It\n", "changelog/README.md": "# Log\n", "a.py": "x = 1\n"}
    candidates, _ = search(World(tmp_path, {"ws": files}), "what is this?")
    assert [each.title for each in candidates if each.kind is Kind.OVERVIEW] == ["README.md"]


def test_what_was_searched_is_recorded(world: World) -> None:
    """Tier and generation per folder are there for the manifest; a folder without index is told."""
    workspace = world.workspace()
    run(hybrid.gather(world.plan("callback"), workspace))
    assert workspace.searched == {"ws": (1, Tier.KEYWORD)}
    world.indexes.clear()
    assert search(world, "callback") == ((), ["no_index"])


def test_one_folder_may_be_asked_alone(tmp_path: Path) -> None:
    """The request's folder limits the search; without it all folders answer in one order."""
    files = {"a.py": "def zebra():\n    return 1\n"}
    world = World(tmp_path, {"api": files, "web": files})
    both, _ = search(world, "where is zebra")
    assert {each.title for each in both if each.kind is Kind.OUTLINE} == {"api/a.py", "web/a.py"}
    plan = world.plan(Request("where is zebra", folder="web"))
    alone, _ = run(hybrid.gather(plan, world.workspace()))
    assert {each.origins for each in alone} == {("web/a.py",)}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("README.md", "README"),
        ("lib/readme", "README"),
        ("a/b/README.md", ""),
        ("package.json", "manifest file"),
        ("a/b/package.json", ""),
        ("docs/ARCHITECTURE.md", "architecture notes"),
        ("cmd/app/main.go", "entry point"),
        ("src/index.ts", "entry point"),
        ("packages/it/src/node/cli.ts", "entry point"),
        ("tests/index.ts", ""),
        ("playground/cli/index.js", ""),
        ("create/template/src/main.ts", ""),
        ("src/domain.py", ""),
    ],
)
def test_overview_files_are_known_by_path(path: str, kind: str) -> None:
    """By whole names at the top of a project."""
    assert kind_of(path) == kind


def ask(world: World, text: str, **fields: object) -> tuple[Candidate, ...]:
    plan = world.plan(Request(text, **fields))  # pyright: ignore[reportArgumentType]
    return run(symbols.gather(plan, world.workspace()))[0]


def test_definitions_come_first_then_their_users(world: World) -> None:
    """The definition of a name asked for outranks the functions that use it."""
    found = ask(world, "what does Context.invoke do with `run_command`")
    by_name = {each.heading[-1]: each for each in found}
    assert by_name["invoke"].relevance == 1.0
    assert [form.detail for form in by_name["invoke"].forms] == [Detail.FULL, Detail.SIGNATURE]
    users = ask(world, "who calls `invoke`")
    assert [each.heading for each in users] == [("Context", "invoke"), ("run_command",)]
    assert users[0].relevance > users[1].relevance
    assert users[1].why == "uses invoke"


def test_a_container_is_where_to_look_and_not_what_is_asked_about(tmp_path: Path) -> None:
    """Of `Store.load` the users of `load` are told, not everybody who mentions `Store`; asked alone, it is meant."""
    code = "class Store:\n    def load(self):\n        return 1\n\n\ndef make():\n    return Store()\n\n\n"
    world = World(tmp_path, {"ws": {"a.py": code + "def use(store):\n    return store.load()\n"}})
    found = {each.heading[-1]: each for each in ask(world, "what does Store.load do")}
    assert set(found) == {"load", "Store", "use"}
    assert found["load"].relevance == 2 * found["Store"].relevance
    assert {each.heading[-1] for each in ask(world, "what does `Store` do")} == {"Store", "make"}


def test_names_in_the_selection_are_looked_up(world: World) -> None:
    """What the selected lines use is defined somewhere; it counts less than what the question names."""
    uri = world.open("ws", "user.py", USER, dirty=False)
    last = USER.count("\n") - 1
    selected = ActiveDocument(uri, selection=Range(Position(last, 0), Position(last, 9)))
    found = {each.heading[-1]: each.relevance for each in ask(world, "why is this slow", active=selected)}
    assert 0 < found["invoke"] < 1
    assert "close" not in found
    cursor = ActiveDocument(uri, Position(last, 0))
    assert "invoke" in {each.heading[-1] for each in ask(world, "why is this slow", active=cursor)}
    on_screen = ActiveDocument(uri, visible=(Range(Position(last, 0), Position(last, 9)),))
    assert "invoke" in {each.heading[-1] for each in ask(world, "why is this slow", active=on_screen)}
    assert ask(world, "why is this slow", active=ActiveDocument(uri)) == ()


def test_a_common_name_says_little(tmp_path: Path) -> None:
    """A name defined all over is left out when only in sight, and weak when asked for."""
    files = {f"m{i}.py": "class A:\n    def get(self):\n        return 1\n" for i in range(9)}
    world = World(tmp_path, {"ws": {**files, "u.py": "value = thing.get(1)\n"}})
    uri = world.open("ws", "u.py", "value = thing.get(1)\n", dirty=False)
    assert ask(world, "why is this slow", active=ActiveDocument(uri, Position(0, 0))) == ()
    assert all(each.relevance < 0.5 for each in ask(world, "what does `get` do"))


def test_definitions_past_the_limit_are_told(tmp_path: Path) -> None:
    """A name with very many definitions gives the best ones, and the reply says that there are more."""
    files = {f"m{i:02}.py": "def handle():\n    return 1\n" for i in range(symbols.MOST_DEFINITIONS + 5)}
    world = World(tmp_path, {"ws": files})
    found, problems = run(symbols.gather(world.plan("what does handle() do"), world.workspace()))
    assert len([each for each in found if each.why.startswith("defines")]) == symbols.MOST_DEFINITIONS
    assert [problem.code for problem in problems] == ["symbols_capped"]
    assert problems[0].message.startswith("5 more")


def test_a_definition_gone_from_disk_is_not_served(world: World) -> None:
    """The index remembers it, the file does not."""
    world.write("ws", "core.py", "class Context:\n    pass\n")
    assert [each.heading for each in ask(world, "what does `invoke` do")] == []


def test_outlines_prefer_containers_then_matches_then_outer_names() -> None:
    """With little room, what holds the hits stays, then what the question names."""
    text = "".join(f"def name_{i}():\n    return {i}\n\n\n" for i in range(10)) + "def zebra():\n    return 0\n"
    found = parse_file("m.py", text).symbols
    spans = outline(found, 100, frozenset({"zebra"}), 3, around=[(5, 6)])
    assert spans == ((0, 1), (4, 5), (40, 41))
    assert outline((), 100, frozenset(), 5) == ((0, 8),)
    assert outline((), 0, frozenset(), 5) == ()


def test_spans_follow_rare_words_and_the_cursor() -> None:
    """A word in every chunk tells nothing; the chunk around the cursor is always there."""
    text = "".join(f"def name_{i}(value):\n" + BODY + "    return value\n\n\n" for i in range(10)).replace(
        "step_3 = 3", "zebra = 3", 1
    )
    chunks = parse_file("m.py", text).chunks
    at = chunks[4].span.start + 2
    spans = speaking_spans(chunks, frozenset({"zebra", "value"}), at)
    assert spans[0][0] == chunks[0].span.start
    assert any(start <= at < end for start, end in spans)
    assert sum(end - start for start, end in spans) < text.count("\n") / 1.5


def test_spans_are_joined_and_forms_shrink() -> None:
    """Touching spans are one; a form that saves nothing is no form."""
    assert merged([(5, 7), (0, 2), (2, 3), (6, 9), (9, 9)], 8) == ((0, 3), (5, 8))
    full, same, less = (Form(Detail.FULL, ((0, 9),)), Form(Detail.SPANS, ((0, 9),)), Form(Detail.OUTLINE, ((0, 1),)))
    assert shrinking(full, same, less) == (full, less)
    assert shrinking(replace(full, spans=())) == ()


def test_an_outline_is_the_same_from_symbols_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order kept for a file's symbols answers any question as a new one does, and few are kept."""
    monkeypatch.setattr(outlines, "KNOWN_ORDERS", 2)
    text = "".join(f"class C{i}:\n    def zebra{i}(self):\n        return 1\n\n" for i in range(6))
    files = [parse_file(f"f{i}.py", text, "python").symbols for i in range(4)]
    for asked in (frozenset[str](), frozenset({"zebra3"}), frozenset({"c2"})):
        for given in files:
            kept = outline(given, 100, asked, 3, around=[(9, 10)])
            assert kept == outline(list(given), 100, asked, 3, around=[(9, 10)])
    assert len(outlines._known_orders) == 2  # pyright: ignore[reportPrivateUsage]
