"""Policy files as they lie on the disk, and one that is being edited in place of its file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from haversack.policy.document import MAX_TEXT
from haversack.policy.layers import Merged
from haversack.policy.loading import MAX_BYTES, WORKSPACE_FILE, PolicyFiles
from haversack.types import Folder, Settings

TEXT = '{"version": 1, "localOnly": true}'


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "ws"
    (root / ".haversack").mkdir(parents=True)
    return Folder("ws", root.as_uri(), os.path.realpath(root))


def put(folder: Folder, text: str) -> Path:
    path = Path(folder.root) / WORKSPACE_FILE
    path.write_text(text, "utf-8")
    return path


def read(files: PolicyFiles, *folders: Folder, trusted: bool = True) -> Merged:
    return files.merged(folders, Settings(), trusted=trusted)


def told(merged: Merged) -> list[tuple[str, str, str]]:
    return [(each.code, each.layer, each.message) for each in merged.findings]


def mine(tmp_path: Path, **policy: object) -> Path:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"version": 1, **policy}), "utf-8")
    return path


def test_an_edited_file_of_a_folder_stands_above_the_users_own(folder: Folder, tmp_path: Path) -> None:
    """What is typed counts in place of what is on the disk, and only what tightens where nobody trusts the folder."""
    put(folder, '{"version": 1, "privacy": {"restrictedPaths": ["old/"]}}')
    files = PolicyFiles(mine(tmp_path, localOnly=True))
    text = '{"version": 1, "localOnly": false, "default": {"model": "openai/gpt-4o"}}'
    merged = files.check(text, folder, Settings(), trusted=True)
    assert merged.layers == ("user's policy", "policy of ws")
    assert merged.policy.local_only
    assert merged.policy.restricted_paths == ()
    assert merged.policy.default is not None
    assert [(code, layer) for code, layer, _ in told(merged)][:1] == [("loosening", "policy of ws")]
    untrusted = files.check(text, folder, Settings(), trusted=False)
    assert untrusted.policy.default is None
    assert "not_trusted" in {code for code, _, _ in told(untrusted)}


def test_the_users_edited_file_stands_alone(folder: Folder, tmp_path: Path) -> None:
    """It is trusted, and neither its saved self nor any folder has a say."""
    files = PolicyFiles(mine(tmp_path, localOnly=True))
    put(folder, TEXT)
    merged = files.check('{"version": 1, "default": {"model": "openai/gpt-4o"}}', None, Settings(), trusted=False)
    assert merged.layers == ("user's policy",)
    assert not merged.policy.local_only
    assert merged.policy.default is not None


def test_each_way_a_file_cannot_be_read_says_why(folder: Folder, tmp_path: Path) -> None:
    """And whose it is. No text of it is told."""
    path = Path(folder.root) / WORKSPACE_FILE
    path.mkdir()
    assert told(read(PolicyFiles(), folder))[0][:2] == ("unreadable", "policy of ws")
    path.rmdir()
    os.mkfifo(path)
    (pipe,) = told(read(PolicyFiles(), folder))
    assert pipe[:2] == ("unreadable", "policy of ws")
    assert pipe[2].startswith("The policy of ws can't be read: it is not a plain file.")
    path.unlink()
    path.write_bytes(b'{"version": 1, "x": "\xff"}')
    assert told(read(PolicyFiles(), folder))[0][2].startswith("The policy of ws can't be read: byte 21 is not UTF-8.")
    path.unlink()
    path.symlink_to("nowhere.json")
    (missing,) = told(read(PolicyFiles(), folder))
    assert missing[:2] == ("unreadable", "policy of ws")
    assert "No such file" in missing[2]
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere.json")
    assert told(read(PolicyFiles(), folder))[0][:2] == ("outside_folder", "policy of ws")
    assert "policy of ws is a link" in told(read(PolicyFiles(), folder))[0][2]


def test_a_file_may_have_so_many_bytes_and_no_more(folder: Folder) -> None:
    """At the limit it is read, and then has too many characters of its own; one more is not even looked at."""
    path = Path(folder.root) / WORKSPACE_FILE
    for n_bytes in (MAX_BYTES, MAX_BYTES + 1):
        path.write_bytes(b" " * n_bytes)
        (found,) = told(read(PolicyFiles(), folder))
        assert found[:2] == ("too_large", "policy of ws")
        assert f"{MAX_TEXT:,}" in found[2]
    wide = "\U0001f511" * (MAX_TEXT - 100)  # four bytes each
    path.write_text(f'{{"version": 1, "$schema": "{wide}", "localOnly": true}}', "utf-8")
    assert read(PolicyFiles(), folder).policy.local_only


def test_a_folder_in_place_of_the_policys_own_is_missing(folder: Folder) -> None:
    """Where `.haversack` is a file there is no policy; where it is a link to nothing somebody wanted one."""
    place = Path(folder.root) / ".haversack"
    place.rmdir()
    place.write_text("not a folder", "utf-8")
    assert told(read(PolicyFiles(), folder)) == []
    place.unlink()
    place.symlink_to("nowhere")
    assert told(read(PolicyFiles(), folder))[0][0] == "unreadable"
    place.unlink()
    Path(folder.root, "somewhere").mkdir()
    place.symlink_to("somewhere")
    assert told(read(PolicyFiles(), folder)) == []


def test_what_was_merged_is_kept_while_nothing_changed(folder: Folder) -> None:
    """Trust and folders count among what may change; a file that is put back at another place is read again."""
    put(folder, TEXT)
    files = PolicyFiles()
    first = read(files, folder)
    assert read(files, folder) is first
    assert read(files, folder, trusted=False) is not first
    assert read(files) is not first
    assert not read(files).policy.local_only
    named = Folder("other", folder.uri, folder.root)
    assert read(files, named).layers == ("policy of other",)


def test_a_requests_own_layer_is_of_that_question_alone(folder: Folder, tmp_path: Path) -> None:
    """It stands above the others and leaves what was merged before in its place."""
    put(folder, '{"version": 1, "privacy": {"restrictedPaths": ["a/"]}}')
    files = PolicyFiles(mine(tmp_path))
    first = read(files, folder)
    own = files.merged([folder], Settings(), trusted=True, request={"version": 1, "localOnly": True})
    assert own.layers == ("user's policy", "policy of ws", "policy of the request")
    assert own.policy.local_only
    assert own.policy.restricted_paths == ("a/",)
    assert read(files, folder) is first
