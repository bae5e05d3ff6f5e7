"""A restricted file stays restricted under every name that it, a copy of it or a tool's spelling of it has."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gathering import World, run

from haversack import pipeline
from haversack.policy.origins import places
from haversack.types import ActiveDocument, Message, Request, Role, Settings, Supplied, ToolCall

TEXT = "".join(f'CANARY_{number} = "a value that nobody else should read {number}"\n' for number in range(6))
SETTINGS = Settings(restricted_paths=("private/", "/top.py", "sub/private/"), model="openai/gpt-4o")
IDENTITY = ("-c", "user.name=T", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null")


def world(tmp_path: Path, **folders: dict[str, str]) -> World:
    return World(tmp_path, folders or {"ws": {"private/b.py": TEXT, "x.py": "x = 1\n"}}, settings=SETTINGS)


def leaks(world: World, request: Request) -> bool:
    """Whether the text is in what a remote model gets."""
    bundle = run(pipeline.run(request, world.workspace()))
    assert not bundle.route.model.local
    return "CANARY" in repr(bundle)


def about(world: World, path: str) -> Request:
    """A file open in the editor: wanted, but no must, so that a remote model serves without it."""
    return Request("explain this", active=ActiveDocument(world.uri("ws", path)))


def test_a_file_in_a_folder_inside_another_goes_by_both_paths(tmp_path: Path) -> None:
    """Also where the folder that is open is the restricted one, so that its own paths do not tell."""
    nested = world(tmp_path, **{"ws": {"x.py": "x = 1\n"}, "ws/private": {"b.py": TEXT}})
    assert not leaks(nested, Request("explain", active=ActiveDocument(nested.uri("ws/private", "b.py"))))


def test_copies_and_hard_links_of_a_restricted_file_are_restricted(tmp_path: Path) -> None:
    here = world(tmp_path)
    os.link(tmp_path / "ws/private/b.py", tmp_path / "ws/hard.py")
    here.write("ws", "copy.py", TEXT)
    assert not leaks(here, about(here, "hard.py"))
    assert not leaks(here, about(here, "copy.py"))
    here.write("ws", "copy.py", "open = 1  # CANARY\n")
    assert leaks(here, about(here, "copy.py"))


def test_an_unsaved_copy_is_restricted(tmp_path: Path) -> None:
    here = world(tmp_path)
    for uri in ("untitled:Untitled-1", f"untitled:{tmp_path}/ws/top.py"):
        active = ActiveDocument(here.open_outside(uri, TEXT if "Untitled" in uri else "CANARY\n"))
        assert not leaks(here, Request("explain", active=active)), uri


def test_files_without_text_are_no_copies(tmp_path: Path) -> None:
    """All empty files are alike: one that is named is not kept from anybody for that."""
    here = world(tmp_path, ws={"private/__init__.py": "", "src/__init__.py": ""})
    bundle = run(pipeline.run(Request("see @src/__init__.py"), here.workspace()))
    assert not bundle.route.model.local


def test_a_link_that_history_names_is_followed(tmp_path: Path) -> None:
    here = world(tmp_path)
    os.symlink("private", tmp_path / "ws/alias")
    said = Message(Role.ASSISTANT, TEXT, origins=("ws/alias/b.py",))
    assert not leaks(here, Request("hi", history=(Message(Role.USER, "look"), said)))


OTHER_NAMES = ("{root}/{name}", "file://{root}/{name}", "{name}", "./{name}", "/elsewhere/ws/{name}", "ws/{name}:3")


@pytest.mark.parametrize("name", ["Alias/c.py", "copy.py"])
@pytest.mark.parametrize("form", OTHER_NAMES)
def test_links_and_copies_are_followed_however_they_are_named(tmp_path: Path, form: str, name: str) -> None:
    """By an absolute path, an address, a path without its folder; as origin, in a diff, in the arguments of a call."""
    here = world(tmp_path, ws={"private/c.py": TEXT, "copy.py": TEXT, "x.py": "x = 1\n"})
    os.symlink("private", tmp_path / "ws/Alias")
    origin, text = form.format(root=tmp_path / "ws", name=name), "k = 'CANARY'"
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "read", json.dumps({"path": origin})),))
    said = (Message(Role.ASSISTANT, text, origins=(origin,)), call, Message(Role.TOOL, text, tool_call_id="1"))
    diff = Message(Role.USER, f"--- a/{name}\n+++ b/{name}\n+{text}\n")
    supplied = (Supplied("s", "tool", text, path=origin), Supplied("d", "a change", diff.content))
    assert not leaks(here, Request("hi", history=(Message(Role.USER, "look"), *said, diff)))
    for item in supplied:
        assert not leaks(here, Request("hi", supplied=(item,)))
    free = form.format(root=tmp_path / "ws", name="x.py")
    assert leaks(here, Request("hi", history=(Message(Role.USER, "look"), replace(said[0], origins=(free,)))))


def test_a_link_from_outside_every_folder_is_followed(tmp_path: Path) -> None:
    here = world(tmp_path)
    os.symlink("ws/private/b.py", tmp_path / "outside.py")
    said = Message(Role.ASSISTANT, "CANARY", origins=(f"{tmp_path}/outside.py",))
    assert not leaks(here, Request("hi", history=(Message(Role.USER, "look"), said)))


SPELLINGS = (
    *("top.py", "ws/top.py", "./top.py", "TOP.py", "/top.py", "//top.py", "ws//top.py", "x/../top.py", "top.py/"),
    *("\\top.py", ".\\top.py", "ws\\top.py", "C:\\work\\ws\\top.py", "/c:/work/ws/top.py", "/home/me/ws/top.py"),
    *("file:///home/me/ws/top.py", "file:///c%3A/ws/top.py", "git:/home/me/ws/top.py?ref=HEAD", "untitled:/ws/top.py"),
    *(
        "vscode-remote://ssh+host/home/me/ws/top.py",
        "top%2Epy",
        "ws/top.py#L3",
        "top.py:3",
        "ws/top.py:3-9",
        "top.py:3:7",
    ),
    *("top.py (3-9)", "\uff34op.py", "to\u200bp.py", " top.py ", "gone/top.py"),
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_an_origin_hides_its_file(tmp_path: Path, spelling: str) -> None:
    """As tools and clients write it, for text they bring and for messages."""
    here = world(tmp_path, ws={"x.py": "x = 1\n"})
    assert not leaks(here, Request("hi", supplied=(Supplied("s", "tool", TEXT, path=spelling),)))
    said = Message(Role.ASSISTANT, TEXT, origins=(spelling,))
    assert not leaks(here, Request("hi", history=(Message(Role.USER, "look"), said)))


@pytest.mark.parametrize("origin", ["ws/src/top.py", "topypy", "ws/x.py", "a/b/top.py", "ws/top.pyx"])
def test_other_files_are_not_taken_for_it(tmp_path: Path, origin: str) -> None:
    here = world(tmp_path, ws={"x.py": "x = 1\n"})
    said = Message(Role.ASSISTANT, TEXT, origins=(origin,))
    assert leaks(here, Request("hi", history=(Message(Role.USER, "look"), said)))


def test_an_origin_with_much_to_interpret_costs_little() -> None:
    """The ways of reading it are few, whatever is in it."""
    for hostile in ("%25" * 3_000, "\\" * 9_000, "a/" * 3_000, "file:" * 2_000, "x:1" * 3_000, " (1" * 3_000):
        assert len(set(places(hostile, ()))) < 10_000


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True)


def test_a_submodules_files_are_not_in_the_diff(tmp_path: Path) -> None:
    """Whatever the repository's own settings say: the submodule's path would stand for all that is in it."""
    here = world(tmp_path, ws={"x.py": "x = 1\n"}, other={"private/b.py": "a = 1\n"})
    for folder in ("other", "ws"):
        git(tmp_path / folder, "init", "-q")
        git(tmp_path / folder, "add", ".")
        git(tmp_path / folder, "commit", "-qm", "all")
    git(tmp_path / "ws", "-c", "protocol.file.allow=always", "submodule", "add", str(tmp_path / "other"), "sub")
    git(tmp_path / "ws", "commit", "-qam", "sub")
    git(tmp_path / "ws", "config", "diff.submodule", "diff")
    here.write("ws", "sub/private/b.py", TEXT)
    assert not leaks(here, Request("what changed? @diff", folder="ws"))


def test_a_piece_of_a_diff_is_credited_to_no_other_file(tmp_path: Path) -> None:
    """By its whole header: a folder's name may end in what parts the two paths."""
    here = world(tmp_path, ws={"s b/k.py": "a\n", "k.py": "b\n", 'q".py': "c\n", "link": "d\n"})
    here.settings = Settings(restricted_paths=("s b/",), model="openai/gpt-4o")
    git(tmp_path / "ws", "init", "-q")
    git(tmp_path / "ws", "add", ".")
    git(tmp_path / "ws", "commit", "-qm", "all")
    here.write("ws", "s b/k.py", "CANARY\n")
    here.write("ws", "k.py", "open1\n")
    here.write("ws", 'q".py', "open2\n")
    (tmp_path / "ws/link").unlink()
    (tmp_path / "ws/link").symlink_to("s b")
    bundle = run(pipeline.run(Request("review my changes"), here.workspace()))
    text = repr(bundle.prompt)
    assert not bundle.route.model.local
    assert ("CANARY" in text, "open1" in text, "open2" in text) == (False, True, True)
