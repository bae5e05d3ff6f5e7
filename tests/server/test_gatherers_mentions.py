"""What the user points at: files, lines, folders, symbols, the selection and the document in front."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from gathering import World, lines_of, run

from haversack.gather import gather
from haversack.gatherers import mentions
from haversack.types import (
    ActiveDocument,
    Candidate,
    Detail,
    FileText,
    Kind,
    Mention,
    MentionKind,
    Position,
    Problem,
    Range,
    Reason,
    Request,
    Settings,
    Source,
)
from haversack.workspace import Workspace

SHOP = '''"""A shop."""

import os


class Cart:
    """Holds items."""

    def add(self, item):
        self.items.append(item)
        return self

    def total(self):
        """The price with discount."""
        discount = 0.1
        return sum(self.items) * (1 - discount)


def checkout(cart):
    cart.total()
    return os.getcwd()
'''
FILLER = "".join(f"\n\ndef filler_{i}(value):\n    step = value + {i}\n    return step * {i}\n" for i in range(40))


@pytest.fixture
def world(tmp_path: Path) -> World:
    files = {
        "src/shop.py": SHOP + FILLER,
        "src/my file.py": "x = 1\n",
        "lib/shop.py": "def other():\n    return 1\n",
        "docs/guide.md": "# Guide\n\nText.\n",
        "node_modules/x/index.js": "secret()\n",
        ".gitignore": "poc/\n",
        ".env": "KEY=1\n",
        ".github/ci.yml": "on: push\n",
        "poc/a.py": "poc = 1\n",
        "package-lock.json": "{}\n",
    }
    made = World(tmp_path, {"ws": files})
    (tmp_path / "ws" / ".git").mkdir()
    for path in ("node_modules/x/index.js", ".env", ".github/ci.yml", "poc/a.py", "package-lock.json"):
        del made.indexes["ws"].parsed[path]
    return made


def refusals(candidates: Sequence[Candidate]) -> dict[str, Reason]:
    """Title and reason of the rows without text; such a row is never required."""
    refused = [each for each in candidates if each.refused]
    assert not any(each.required or each.text or (each.file and each.file.lines) for each in refused)
    return {each.title: each.refused[0] for each in refused}


def gathered(world: World, text: str = "why is the discount wrong", **fields: object):
    plan = world.plan(Request(text, **fields))  # pyright: ignore[reportArgumentType]
    return run(mentions.gather(plan, world.workspace()))


def one(world: World, mention: Mention, text: str = "why is the discount wrong") -> Candidate:
    candidates, problems = gathered(world, text, mentions=(mention,))
    assert problems == ()
    assert len(candidates) == 1
    return candidates[0]


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code for problem in problems]


def test_a_mentioned_file_is_required_with_three_forms(world: World) -> None:
    """Whole; the parts that speak of the question with an outline; the outline alone: each smaller than the last."""
    candidate = one(world, Mention("src/shop.py"))
    assert (candidate.required, candidate.kind, candidate.origins) == (True, Kind.FILE, ("ws/src/shop.py",))
    assert [form.detail for form in candidate.forms] == [Detail.FULL, Detail.SPANS, Detail.OUTLINE]
    assert lines_of(candidate, "full") == SHOP + FILLER
    spans = lines_of(candidate, "spans")
    assert "return sum(self.items) * (1 - discount)" in spans
    assert "step = value + 30" not in spans
    assert "def checkout(cart):" in spans
    outline = lines_of(candidate, "outline")
    assert "class Cart:" in outline
    assert "discount = 0.1" not in outline


def test_a_large_file_without_symbols_shows_its_head(world: World) -> None:
    """Data is served by its first lines when it does not fit."""
    world.write("ws", "big.txt", "".join(f"row {i} {'x' * 40}\n" for i in range(3_000)))
    candidate = one(world, Mention("big.txt"))
    assert candidate.forms[-1].spans[0][0] == 0
    assert sum(end - start for start, end in candidate.forms[-1].spans) < 50


@pytest.mark.parametrize("text", ["@src/shop.py:9-11", "@src/shop.py#L9-L11", '@"src/shop.py":9-11'])
def test_a_line_range_is_served_as_it_is(world: World, text: str) -> None:
    """Whole lines as a person counts them, required, nothing else of the file."""
    candidates, problems = gathered(world, f"explain {text}")
    assert problems == ()
    assert lines_of(candidates[0], "full") == (
        "    def add(self, item):\n        self.items.append(item)\n        return self\n"
    )
    assert candidates[0].required
    assert [form.detail for form in candidates[0].forms] == [Detail.FULL]


def test_a_line_range_in_the_mention_itself_and_past_the_end(world: World) -> None:
    """`lines` means the same; past the end the whole file is taken and said so."""
    candidate = one(world, Mention("src/my file.py", lines=(0, 5)))
    assert lines_of(candidate, "full") == "x = 1\n"
    candidates, problems = gathered(world, mentions=(Mention("src/my file.py:90"),))
    assert codes(problems) == ["mention_lines_past_end"]
    assert candidates[0].id == "mention:ws/src/my file.py"


def test_names_with_blanks_and_bare_names(world: World) -> None:
    """Quoted names are whole; a bare file name is found anywhere, and named when it is not alone."""
    assert gathered(world, 'see @"src/my file.py"')[0][0].file
    assert one(world, Mention("guide.md")).id == "mention:ws/docs/guide.md"
    candidates, problems = gathered(world, "see @shop.py")
    assert codes(problems) == ["mention_ambiguous"]
    assert "ws/lib/shop.py" in problems[0].message
    assert {each.id for each in candidates} == {"mention:ws/lib/shop.py", "mention:ws/src/shop.py"}


def test_a_folder_is_its_files_outlines_best_first(world: World) -> None:
    """Outlines only, not required, the file closest to the question first, capped with a word on it."""
    for number in range(30):
        world.write("ws", f"pkg/m{number:02}.py", f"def f{number}():\n    return {number}\n")
    world.write("ws", "pkg/discount.py", "def rate():\n    return 1\n")
    world.indexes["ws"].__init__(
        world.tmp / "ws", {f"pkg/{each.name}": each.read_text() for each in (world.tmp / "ws" / "pkg").iterdir()}
    )
    candidates, problems = gathered(world, "where is the discount made", mentions=(Mention("pkg", MentionKind.FOLDER),))
    assert codes(problems) == ["folder_capped"]
    assert len(candidates) == mentions.FOLDER_FILES
    assert candidates[0].id == "folder:ws/pkg/discount.py"
    assert {form.detail for each in candidates for form in each.forms} == {Detail.OUTLINE}
    assert not any(each.required for each in candidates)


@pytest.mark.parametrize("name", ["Cart.total", "Cart::total", "Cart.total()", "total"])
def test_a_symbol_is_its_definition(world: World, name: str) -> None:
    """Whole and as signature; its container narrows it down."""
    candidate = one(world, Mention(name))
    assert (candidate.kind, candidate.required, candidate.heading) == (Kind.SYMBOL, True, ("Cart", "total"))
    assert lines_of(candidate, "full").startswith("    def total(self):\n")
    assert lines_of(candidate, "signature") == "    def total(self):\n"


def test_of_things_with_one_name_what_can_be_called_comes_before_fields_and_code_before_tests(tmp_path: Path) -> None:
    """`@run` is first of all the function, not an option, and not its double in a test."""
    files = {
        "a.py": "class Options:\n    run: bool = True\n",
        "tests/test_b.py": "def run():\n    pass\n",
        "z.py": "def run():\n    return 1\n",
    }
    found, _ = gathered(World(tmp_path, {"ws": files}), "what does @run do")
    assert [each.file.path for each in found if each.file] == ["z.py", "a.py", "tests/test_b.py"]


def test_a_folders_code_comes_before_its_tests(tmp_path: Path) -> None:
    """Their paths hold as many words of the question, as all hold the folder's."""
    files = {"pkg/aa_test.py": "def f(): ...\n", "pkg/pkg_zz.py": "def g(): ...\n", "pkg/sub/c.py": "def h(): ...\n"}
    found, _ = gathered(World(tmp_path, {"ws": files}), "what is in @pkg/")
    assert [each.title for each in found] == ["pkg/pkg_zz.py", "pkg/sub/c.py", "pkg/aa_test.py"]


def test_a_symbol_of_another_container_is_not_meant(world: World) -> None:
    """`Basket.total` is not `Cart.total`."""
    assert codes(gathered(world, mentions=(Mention("Basket.total"),))[1]) == ["mention_not_found"]


def test_what_resolves_to_nothing_weighs_by_where_it_stands(world: World) -> None:
    """An explicit mention is an error with a hint; a word of the text is a note."""
    candidates, problems = gathered(world, mentions=(Mention("src/shopp.py"), Mention("shop")))
    assert codes(problems) == ["mention_not_found", "mention_not_found"]
    assert refusals(candidates) == {"src/shopp.py": Reason.UNREADABLE, "shop": Reason.UNREADABLE}
    assert "src/shop.py" in problems[1].remedy
    text = "install @types/node, ask @someone about @property"
    assert codes(gathered(world, text)[1]) == ["mention_ignored"] * 3


def test_a_mention_outside_is_a_problem_and_the_rest_goes_on(world: World) -> None:
    """Nothing is read, nothing is hinted, the other mention is served; the refused one has a row of its own."""
    candidates, problems = gathered(world, "see @../../etc/passwd and @docs/guide.md")
    assert [each.id for each in candidates if not each.refused] == ["mention:ws/docs/guide.md"]
    assert refusals(candidates) == {"../../etc/passwd": Reason.OUTSIDE}
    assert codes(problems) == ["path_outside_workspace"]


@pytest.mark.parametrize("path", ["poc/a.py", "poc", ".env", "node_modules/x/index.js", ".git/config"])
def test_what_is_kept_back_stays_back_when_named(world: World, path: str) -> None:
    """Ignored, secret and foreign files are explained, not read; the row names the rule."""
    world.write("ws", ".git/config", "token\n")
    candidates, problems = gathered(world, mentions=(Mention(path),))
    assert codes(problems) == ["mention_unreadable"]
    assert refusals(candidates) == {path: Reason.UNREADABLE}
    assert "by the rule" in candidates[0].why


def test_a_secret_file_may_be_named_where_its_owner_allows_it(world: World) -> None:
    """The user's setting opens secret names, and nothing that other rules leave out."""
    world.settings = Settings(include_secret_names=True, include_hidden=True)
    assert one(world, Mention(".env")).required
    assert codes(gathered(world, mentions=(Mention("poc/a.py"),))[1]) == ["mention_unreadable"]


@pytest.mark.parametrize("path", [".github/ci.yml", "package-lock.json"])
def test_what_search_leaves_out_may_be_named(world: World, path: str) -> None:
    """Hidden and generated files are noise in a search and an answer when asked for."""
    assert one(world, Mention(path)).required


def test_the_active_document_is_added_unless_its_path_is_mentioned(world: World) -> None:
    """The same base name elsewhere does not count as the same file."""
    active = ActiveDocument(world.uri("ws", "src/shop.py"), Position(14, 0))
    candidates, _ = gathered(world, active=active, mentions=(Mention("lib/shop.py"),))
    assert [(each.id, each.required) for each in candidates] == [
        ("mention:ws/lib/shop.py", True),
        ("active:ws/src/shop.py", False),
    ]
    assert "discount = 0.1" in lines_of(candidates[1], "spans")
    again, _ = gathered(world, active=active, mentions=(Mention("src/shop.py"),))
    assert [each.id for each in again] == ["mention:ws/src/shop.py"]
    by_lines, _ = gathered(world, active=active, mentions=(Mention("src/shop.py:1-2"),))
    assert [each.id for each in by_lines] == ["mention:ws/src/shop.py:1-2", "active:ws/src/shop.py"]


def test_a_selection_is_required_as_whole_lines(world: World) -> None:
    """From the first to the last line touched; a line only reached at its start is not one of them."""
    uri = world.uri("ws", "src/shop.py")
    for end, n_lines in ((Position(11, 0), 3), (Position(11, 1), 4), (Position(8, 9), 1)):
        active = ActiveDocument(uri, selection=Range(Position(8, 4), end))
        candidates, _ = gathered(world, active=active)
        assert (candidates[0].kind, candidates[0].required) == (Kind.SELECTION, True)
        assert candidates[0].forms[0].spans == ((8, 8 + n_lines),)
    empty = ActiveDocument(uri, selection=Range(Position(8, 4), Position(8, 4)))
    assert [each.kind for each in gathered(world, active=empty)[0]] == [Kind.FILE]


def test_positions_past_the_end_do_no_harm(world: World) -> None:
    """A cursor or selection of a longer, older text is moved to the end."""
    uri = world.uri("ws", "src/my file.py")
    active = ActiveDocument(uri, Position(99, 0), Range(Position(50, 0), Position(99, 0)))
    candidates, _ = gathered(world, active=active)
    assert candidates[0].forms[0].spans == ((0, 1),)


def test_the_unsaved_buffer_is_what_is_served(world: World) -> None:
    """A mention shows what the editor shows and says that it is not saved."""
    world.open("ws", "src/my file.py", "x = 99\n")
    candidate = one(world, Mention("src/my file.py"))
    assert (lines_of(candidate, "full"), candidate.flags) == ("x = 99\n", ("unsaved",))


def test_documents_outside_every_folder(world: World) -> None:
    """An untitled buffer is served; output panels and files on other disks are not opened for being in front."""
    uri = world.open_outside("untitled:Untitled-1", "y = 1\n")
    assert one(world, Mention("untitled:Untitled-1")).id == f"mention:/{uri}"
    assert [each.id for each in gathered(world, active=ActiveDocument(uri))[0]] == [f"active:/{uri}"]
    world.open_outside("output:log", "noise\n")
    assert gathered(world, active=ActiveDocument("output:log"))[0] == ()
    candidates, problems = gathered(world, active=ActiveDocument("file:///etc/passwd"))
    assert (refusals(candidates), problems) == ({"file:///etc/passwd": Reason.OUTSIDE}, ())


def test_what_was_found_in_time_is_served_and_the_rest_has_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file on a disk that hangs costs itself alone, before the deadline, in a row and a problem."""
    hangs = threading.Event()
    read = Workspace.read

    def slow(self: Workspace, folder: str, path: str) -> FileText | None:
        if path == "lib/shop.py":
            hangs.wait(5)
        return read(self, folder, path)

    monkeypatch.setattr(Workspace, "read", slow)
    named = (Mention("src/shop.py"), Mention("lib/shop.py"), Mention("docs/guide.md"))
    active = ActiveDocument(world.uri("ws", "src/my file.py"))
    plan = world.plan(Request("why", mentions=named, active=active), sources=((Source.MENTIONS, 0.5),))
    gathered = run(gather(plan, world.workspace()))
    hangs.set()
    assert [each.id for each in gathered.candidates] == [
        "mention:ws/src/shop.py",
        "refused:lib/shop.py",
        "mention:ws/docs/guide.md",
        "active:ws/src/my file.py",
    ]
    assert refusals(gathered.candidates) == {"lib/shop.py": Reason.LATE}
    assert codes(gathered.problems) == ["mentions_late"]
    assert [timing.status for timing in gathered.timings] == ["ok"]


def test_a_secret_file_in_front_is_not_taken(world: World) -> None:
    """Opening `.env` in the editor does not send it anywhere."""
    uri = world.open("ws", ".env", "KEY=2\n")
    candidates, problems = gathered(world, active=ActiveDocument(uri))
    assert problems == ()
    assert refusals(candidates) == {".env": Reason.UNREADABLE}
    assert "secret-name" in candidates[0].why


def test_two_folders_show_their_names(tmp_path: Path) -> None:
    """With several folders a title says which; an ambiguous path names all."""
    files = {"src/index.ts": "export function run() { return 1 }\n"}
    world = World(tmp_path, {"api": files, "web": files})
    candidates, problems = gathered(world, mentions=(Mention("src/index.ts"),))
    assert [each.title for each in candidates] == ["api/src/index.ts", "web/src/index.ts"]
    assert codes(problems) == ["mention_ambiguous"]
    active = ActiveDocument(world.uri("web", "src/index.ts"))
    candidates, problems = gathered(world, mentions=(Mention("src/index.ts"),), active=active)
    assert ([each.title for each in candidates], problems) == (["web/src/index.ts"], ())


def test_more_names_than_anybody_types_are_refused_one_by_one(world: World) -> None:
    """The first ones are looked up in time, each of the others has a row, and an empty name means nothing."""
    names = tuple(Mention(f"none{number}.py") for number in range(mentions.MOST_MENTIONS - 1))
    given = (*names, Mention("docs/guide.md"), Mention("src/shop.py"), Mention("lib/shop.py"))
    candidates, problems = gathered(world, mentions=given)
    assert codes(problems)[-1] == "mentions_capped"
    assert [each.id for each in candidates if each.required] == ["mention:ws/docs/guide.md"]
    refused = refusals(candidates)
    assert (refused["src/shop.py"], refused["lib/shop.py"]) == (Reason.FILE_CAP, Reason.FILE_CAP)
    assert codes(gathered(world, mentions=(Mention(""), Mention("  ")))[1]) == ["mention_not_found"] * 2


def test_a_file_over_the_size_limit_is_explained(tmp_path: Path) -> None:
    """The limit of the settings holds for mentions too, and the reply says so."""
    world = World(tmp_path, {"ws": {"a.txt": "x" * 2_000}}, settings=Settings(max_file_size=1_000))
    candidates, problems = gathered(world, mentions=(Mention("a.txt"),))
    assert codes(problems) == ["mention_unreadable"]
    assert refusals(candidates) == {"a.txt": Reason.UNREADABLE}
    assert "too-large" in problems[0].message
