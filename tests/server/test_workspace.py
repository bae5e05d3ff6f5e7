"""The workspace: what a mention may name, what is read, and how old places meet today's text."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from gathering import World, run

from haversack.places import Place
from haversack.types import FileText, HaversackError, Settings
from haversack_index.types import SkipReason

OUTSIDE = [
    "../../etc/passwd",
    "..",
    "../ws-evil/a.py",
    "/etc/passwd",
    "/etc/does-not-exist",
    "//server/share/x",
    "src/../../x",
    "src/../../../etc/passwd",
    "./../x",
    "~/.ssh/id_rsa",
    "~",
    "~root/.bashrc",
    "~\\x",
    "file:///etc/passwd",
    "file:///etc/does-not-exist",
    "file://server/share/x",
    "file:///%65tc/passwd",
    "src/%2e%2e/%2e%2e/x",
    "%2e%2e/x",
    "%2E%2E%2Fx",
    "src/..%2f..%2fx",
    "%2fetc/passwd",
    "..\\..\\x",
    "src\\..\\..\\x",
    "src/..\\../x",
    "a\0b",
    "a%00b",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:",
    "\\\\server\\share\\x",
    "\\etc\\passwd",
    "out/passwd",
    "out",
    "name.txt",
    "chain/passwd",
    "dangling",
]


@pytest.fixture
def linked(tmp_path: Path) -> World:
    world = World(tmp_path, {"ws": {"src/a.py": "a = 1\n", "keep/b.py": "b = 2\n"}})
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "a.py").write_text("evil = 1\n")
    root = tmp_path / "ws"
    (root / "out").symlink_to("/etc")
    (root / "name.txt").symlink_to("/etc/hostname")
    (root / "chain").symlink_to("out")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "inner").symlink_to("keep")
    return world


@pytest.mark.parametrize("value", OUTSIDE)
def test_a_mention_that_leaves_the_workspace_is_refused(linked: World, value: str) -> None:
    """Every spelling of a place outside gives the same refusal, whether the place exists or not."""
    with pytest.raises(HaversackError) as caught:
        linked.workspace().resolve(value)
    assert caught.value.code == "path_outside_workspace"
    assert caught.value.message == f"{value!r} is outside the workspace."


def test_an_absolute_path_to_a_sibling_with_the_same_beginning_is_outside(linked: World) -> None:
    """`/ws-evil` does not pass for `/ws`."""
    with pytest.raises(HaversackError):
        linked.workspace().resolve(str(linked.tmp / "ws-evil" / "a.py"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("src/a.py", Place("ws", "src/a.py")),
        ("./src/a.py", Place("ws", "src/a.py")),
        ("src/../src/a.py", Place("ws", "src/a.py")),
        ("src/%61.py", Place("ws", "src/a.py")),
        ("src\\a.py", Place("ws", "src/a.py")),
        ("ws/src/a.py", Place("ws", "src/a.py")),
        ("src", Place("ws", "src", True)),
        ("src/", Place("ws", "src", True)),
        (".", Place("ws", "", True)),
        ("inner/b.py", Place("ws", "keep/b.py")),
    ],
)
def test_a_path_inside_is_found_in_every_spelling(linked: World, value: str, expected: Place) -> None:
    """Relative, encoded, with backslashes, by folder name or through an inner link: it is the same place."""
    assert linked.workspace().resolve(value) == (expected,)


def test_absolute_paths_and_uris_inside_are_fine(linked: World) -> None:
    """The editor's own spelling of a file is accepted."""
    workspace = linked.workspace()
    expected = (Place("ws", "src/a.py"),)
    assert workspace.resolve(str(linked.tmp / "ws" / "src" / "a.py")) == expected
    assert workspace.resolve(linked.uri("ws", "src/a.py")) == expected
    assert workspace.resolve("no/such.py") == ()


def test_a_name_with_a_percent_sign_is_taken_literally_first(tmp_path: Path) -> None:
    """Decoding is tried after the written name, and once only."""
    world = World(tmp_path, {"ws": {"100%25.py": "x = 1\n", "a b.py": "y = 1\n"}})
    assert world.workspace().resolve("100%25.py") == (Place("ws", "100%25.py"),)
    assert world.workspace().resolve("a%20b.py") == (Place("ws", "a b.py"),)
    assert world.workspace().resolve("a%2520b.py") == ()


def test_several_folders_share_a_relative_path(tmp_path: Path) -> None:
    """The active document's folder decides, else all are given; an exact path comes before folder-name form."""
    files = {"src/index.ts": "export const api = 1\n"}
    world = World(tmp_path, {"api": {**files, "web/src/index.ts": "export const nested = 1\n"}, "web": files})
    workspace = world.workspace()
    assert workspace.resolve("src/index.ts", "web") == (Place("web", "src/index.ts"),)
    assert workspace.resolve("src/index.ts") == (Place("api", "src/index.ts"), Place("web", "src/index.ts"))
    assert workspace.resolve("web/src/index.ts", "web") == (Place("api", "web/src/index.ts"),)
    assert workspace.resolve("api/src/index.ts", "web") == (Place("api", "src/index.ts"),)


def test_links_are_not_followed_when_reading(linked: World) -> None:
    """A link is refused even when its path is handed over directly, as a stale index might."""
    workspace = linked.workspace()
    assert workspace.read("ws", "name.txt") is None
    assert workspace.read("ws", "out/passwd") is None
    assert workspace.read("ws", "chain/passwd") is None
    assert workspace.why_not("ws", "name.txt") is SkipReason.SYMLINK


def test_a_file_swapped_for_a_link_never_leaks(tmp_path: Path) -> None:
    """While a folder flips between itself and a link outside, no read gives the outside text."""
    world = World(tmp_path, {"ws": {"d/f.txt": "inside\n"}})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("SECRET\n")
    (tmp_path / "link").symlink_to(outside)
    folder, parked = tmp_path / "ws" / "d", tmp_path / "parked"
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            os.rename(folder, parked)
            os.symlink(outside, folder)
            os.unlink(folder)
            os.rename(parked, folder)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        end = time.monotonic() + 0.5
        seen: set[str] = set()
        while time.monotonic() < end:
            file = world.workspace().read("ws", "d/f.txt")
            seen.add("".join(file.lines) if file is not None else "")
    finally:
        stop.set()
        thread.join()
    assert "SECRET\n" not in seen


def test_a_link_that_vanishes_under_the_question_names_nothing(linked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link gone between two looks at it is an unknown name, not a failure of everything that was mentioned."""

    def gone(path: str) -> str:
        raise FileNotFoundError(path)

    workspace = linked.workspace()
    monkeypatch.setattr("haversack.places.os.path.realpath", gone)
    assert workspace.resolve("inner/a.py") == ()
    assert workspace.resolve(str(linked.tmp / "elsewhere")) == ()


def test_an_open_buffer_replaces_its_file(tmp_path: Path) -> None:
    """The unsaved text answers while the document is open, the disk afterwards, and the file says which."""
    world = World(tmp_path, {"ws": {"conf.py": "limit = 10\n"}})
    uri = world.open("ws", "conf.py", "limit = 99\n")
    world.write("ws", "conf.py", "limit = 20\n")
    file = world.workspace().read("ws", "conf.py")
    assert file is not None
    assert (file.lines, file.unsaved) == (("limit = 99\n",), True)
    del world.documents[uri]
    again = world.workspace().read("ws", "conf.py")
    assert again is not None
    assert (again.lines, again.unsaved) == (("limit = 20\n",), False)


def test_a_clean_buffer_has_the_hash_of_its_file(tmp_path: Path) -> None:
    """A byte order mark is in the bytes and not in the text; the index must still be taken for fresh."""
    world = World(tmp_path, {"ws": {"a.py": "\ufeffx = 1\n"}})
    world.open("ws", "a.py", "x = 1\n", dirty=False)
    file = world.workspace().read("ws", "a.py")
    assert file is not None
    assert file.content_hash == world.indexes["ws"].hashes["a.py"]


def test_an_untitled_document_is_read_by_its_uri(tmp_path: Path) -> None:
    """A document outside every folder is known by its address and by nothing else."""
    world = World(tmp_path, {"ws": {}})
    uri = world.open_outside("untitled:Untitled-1", "x = 1\n")
    workspace = world.workspace()
    assert workspace.resolve("untitled:Untitled-1") == (Place("", uri),)
    file = workspace.read("", uri)
    assert file is not None
    assert file.unsaved


def test_what_is_not_text_is_not_read(tmp_path: Path) -> None:
    """Binary, oversized, missing and special files give the reason instead of text, and a pipe does not block."""
    world = World(tmp_path, {"ws": {}}, settings=Settings(max_file_size=1_000))
    root = tmp_path / "ws"
    (root / "b.bin").write_bytes(b"\0\1\2")
    (root / "big.txt").write_text("x" * 2_000)
    os.mkfifo(root / "pipe")
    workspace = world.workspace()
    reasons = [workspace.why_not("ws", name) for name in ("b.bin", "big.txt", "pipe", "none.txt")]
    assert reasons == [SkipReason.BINARY, SkipReason.TOO_LARGE, SkipReason.SPECIAL, SkipReason.GONE]


def test_a_hit_is_found_again_after_lines_were_inserted(tmp_path: Path) -> None:
    """The index names lines of an older text; the definition's lines today are served, marked as stale."""
    text = "def make_box():\n    return 1\n\n\ndef other():\n    return 2\n"
    world = World(tmp_path, {"ws": {"m.py": text}})
    hit = _hit(world, "make_box")
    world.write("ws", "m.py", "import os\n" * 10 + text)
    located = world.workspace().locate("ws", hit)
    assert located is not None
    assert (
        located.file.lines[located.start] == "def make_box():\n"
        or "def make_box():\n" in located.file.lines[located.start : located.end]
    )
    assert located.stale


def test_a_hit_whose_definition_is_gone_is_dropped(tmp_path: Path) -> None:
    """No text stands in for a definition that was removed, and none for a deleted file."""
    body = "".join(f"    x{i} = {i}\n" for i in range(30))
    world = World(tmp_path, {"ws": {"m.py": f"def ghost():\n{body}\n\ndef other():\n{body}"}})
    hit = _hit(world, "ghost")
    world.write("ws", "m.py", f"def other():\n{body}")
    assert world.workspace().locate("ws", hit) is None
    (tmp_path / "ws" / "m.py").unlink()
    assert world.workspace().locate("ws", hit) is None


def test_unsaved_definitions_are_known(tmp_path: Path) -> None:
    """A function typed a moment ago is defined, and the one it replaced is not."""
    world = World(tmp_path, {"ws": {"m.py": "def old_name():\n    return 1\n"}})
    world.open("ws", "m.py", "def new_name():\n    return 1\n")
    workspace = world.workspace()
    assert [each.symbol.name for each in workspace.definitions("ws", ("old_name", "new_name"))] == ["new_name"]
    world.open("ws", "m.py", "x = 1\n\n\ndef old_name():\n    return 1\n")
    assert [each.symbol.span.start for each in world.workspace().definitions("ws", ("old_name",))] == [3]


def test_a_secret_buffer_is_not_laid_over_the_index(tmp_path: Path) -> None:
    """An open `.env` or ignored file does not enter the search by being edited."""
    world = World(tmp_path, {"ws": {".gitignore": "build/\n", "a.py": "x = 1\n"}})
    (tmp_path / "ws" / ".git").mkdir()
    world.write("ws", ".env", "KEY=1\n")
    world.write("ws", "build/out.py", "x = 1\n")
    world.open("ws", ".env", "KEY=2\n")
    world.open("ws", "build/out.py", "x = 2\n")
    world.open("ws", "a.py", "x = 2\n")
    world.open("ws", "new.py", "y = 2\n")
    assert [parsed.path for parsed in world.workspace().overlay("ws")] == ["a.py", "new.py"]


def test_a_cached_text_follows_the_disk(tmp_path: Path) -> None:
    """The cache between requests never answers with a text that is no longer there."""
    from haversack.text_cache import TextCache
    from haversack.workspace import Workspace

    world = World(tmp_path, {"ws": {"a.py": "one\n"}})
    texts = TextCache()

    def read() -> tuple[str, ...]:
        from gathering import POOL

        file = Workspace(world.snapshot(), world.indexes, POOL, texts=texts).read("ws", "a.py")
        return file.lines if file is not None else ()

    assert read() == ("one\n",)
    assert read() == ("one\n",)
    world.write("ws", "a.py", "two\n")
    assert read() == ("two\n",)
    (tmp_path / "ws" / "a.py").unlink()
    assert read() == ()


def test_a_cached_text_follows_a_change_that_put_its_time_back(tmp_path: Path) -> None:
    """As archivers do: the same size and time of writing, other words."""
    from haversack.text_cache import TextCache

    (folder,) = World(tmp_path, {"ws": {"a.py": "old = 1\n"}}).snapshot().folders
    path, texts = tmp_path / "ws/a.py", TextCache()
    now = time.time()

    def read() -> object:
        os.utime(path, (now - 3_600, now - 3_600))
        file = texts.load(folder, "a.py", 1_000, now)
        return file.lines if isinstance(file, FileText) else file

    assert read() == ("old = 1\n",)
    path.write_text("new = 1\n")
    assert read() == ("new = 1\n",)


def test_git_answers_only_in_a_trusted_workspace(tmp_path: Path) -> None:
    """Without trust, and where git fails or takes too long, the answer is empty."""
    world = World(tmp_path, {"ws": {"a.py": "x\n"}})
    assert run(world.workspace().git("ws", "--version")).startswith("git version")
    assert run(world.workspace().git("ws", "no-such-command")) == ""
    start = time.monotonic()
    assert run(world.workspace().git("ws", "-c", "alias.nap=!sleep 5", "nap", seconds=0.1)) == ""
    assert time.monotonic() - start < 2
    world.trusted = False
    assert run(world.workspace().git("ws", "--version")) == ""


def _hit(world: World, name: str):
    from haversack_index.types import Hit

    index = world.indexes["ws"]
    chunk = next(chunk for chunk in index.parsed["m.py"].chunks if name in chunk.names)
    return Hit(
        chunk.span, chunk.kind, chunk.heading, chunk.signature_end, 1.0, (), index.hashes["m.py"], "python", chunk.names
    )
