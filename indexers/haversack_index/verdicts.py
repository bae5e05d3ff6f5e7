"""Whether a file or folder may be read, by its name, its kind, its size and the rules: no content is looked at.

The order of the questions, first answer wins: a name that cannot be opened, a symbolic link, `.git`, a secret's name,
the tool's own rules (which may bring back what the later ones skip), what a skipped parent hands down, git's rules,
special files, dependency and output folders, hidden names, names of lock and generated files, size.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from haversack_index import names
from haversack_index.ignore import GIT_FILE, TOOL_FILE, Rules
from haversack_index.types import SkipReason

# Linux refuses longer ones; other systems refuse earlier, when opening.
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4095


@dataclass(frozen=True, slots=True)
class WalkRules:
    """What the user decides. `max_file_size` is in bytes, inclusive."""

    include_hidden: bool = False
    max_file_size: int = 1_000_000
    allow_secret_names: bool = False  # from the user's own settings only, never from a workspace's


@dataclass(frozen=True, slots=True)
class Found:
    """A file to index. `size` in bytes. From `check`, a path ending in `/` is a folder that the walk enters."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or with a trailing `/` a whole folder, that is left out, and the rule that says so."""

    path: str
    reason: SkipReason
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder to list: `path` as users see it ("" or ending in `/`), `key` relative to the rules' top."""

    path: str
    key: bytes
    rules: Rules
    inherited: Skipped | None  # the verdict of an ignored folder, entered for what a tool rule brings back


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder, by what can be told of it without following it."""

    name: str
    mode: int
    sibling: Callable[[str], bool]
    inner: Callable[[str], bool]


Verdict = Skipped | None


def decide(folder: Folder, entry: Entry, rules: WalkRules) -> tuple[Verdict, Folder | None]:
    """Why `entry` is skipped (None: it is not, by its name and kind), and for a folder to enter what to list."""
    name = entry.name
    is_directory = stat.S_ISDIR(entry.mode)
    shown = folder.path + name + ("/" if is_directory else "")
    if (bad := bad_name(folder.path, name)) is not None:
        return Skipped(printable(shown), SkipReason.BAD_NAME, bad), None
    if stat.S_ISLNK(entry.mode):
        # Git refuses rule files that are links too: they would let a tree be judged by a file from elsewhere.
        note = "rule file is a link: not read" if name in (GIT_FILE, TOOL_FILE) else ""
        return Skipped(shown, SkipReason.SYMLINK, note), None
    if name.lower() == names.NEVER:
        return Skipped(shown, SkipReason.VENDORED, f"folder name {name}"), None
    if not is_directory and not rules.allow_secret_names and names.is_secret(name):
        return Skipped(shown, SkipReason.SECRET_NAME, f"file name {name}"), None
    key = (folder.key + b"/" if folder.key else b"") + os.fsencode(name)
    verdict = _ruled_out(folder, entry, key, shown, rules)
    if not is_directory:
        return verdict, None
    if verdict is None:
        return None, Folder(shown, key, folder.rules, None)
    if folder.rules.tool_opens(key):
        return None, Folder(shown, key, folder.rules, verdict)
    return verdict, None


def _ruled_out(folder: Folder, entry: Entry, key: bytes, shown: str, rules: WalkRules) -> Verdict:
    is_directory = stat.S_ISDIR(entry.mode)
    special = not is_directory and not stat.S_ISREG(entry.mode)
    tool = folder.rules.tool_match(key, is_directory)
    if tool is not None:
        if not tool.negated:
            return Skipped(shown, SkipReason.HAVERSACK_IGNORED, str(tool))
        return Skipped(shown, SkipReason.SPECIAL) if special else None
    if folder.inherited is not None:
        return Skipped(shown, folder.inherited.reason, folder.inherited.rule)
    git = folder.rules.git_match(key, is_directory)
    if git is not None and not git.negated:
        return Skipped(shown, SkipReason.GIT_IGNORED, str(git))
    if special:
        return Skipped(shown, SkipReason.SPECIAL)
    name = entry.name
    if is_directory:
        mark = names.vendored_mark(name, entry.sibling, entry.inner)
        if mark is not None:
            return Skipped(shown, SkipReason.VENDORED, mark)
    if name.startswith(".") and not rules.include_hidden:
        return Skipped(shown, SkipReason.HIDDEN)
    reason = None if is_directory else names.file_reason(name)
    return Skipped(shown, reason, f"file name {name}") if reason is not None else None


def sized(path: str, status: os.stat_result, rules: WalkRules) -> Found | Skipped:
    if status.st_size > rules.max_file_size:
        return Skipped(path, SkipReason.TOO_LARGE, f"{status.st_size} bytes, limit {rules.max_file_size}")
    return Found(path, status.st_size, status.st_mtime_ns)


def bad_name(folder: str, name: str) -> str | None:
    """Why no file of this name can be opened and shown; None for a good name. Newlines are allowed."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "not UTF-8"
    if length > MAX_NAME_BYTES:
        return "name too long"
    return "path too long" if length + len(folder.encode()) > MAX_PATH_BYTES else None


def printable(path: str) -> str:
    """The path with bytes that are not UTF-8 written as `\\xNN`, so that a row can always be stored and sent."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class Inside:
    """Whether a name exists in a folder of the disk, asked only when it matters."""

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._folder, name))
