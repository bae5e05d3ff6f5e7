"""Which files of a workspace folder may be read: by walking it, or asked for one path; both give the same verdicts.

The order of the questions, first answer wins: a name that cannot be opened, a symbolic link, `.git`, a secret's name,
the tool's own rules (which may bring back what the later ones skip), what a skipped parent hands down, git's rules,
hidden names, dependency and output folders, special files, names of lock and generated files, size.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from haversack_index import names
from haversack_index.contents import CannotRead, content_skip, read_file
from haversack_index.ignore import GIT_FILE, TOOL_FILE, Rules, rules_for
from haversack_index.types import SkipReason

__all__ = ["CannotRead", "Checker", "Found", "Skipped", "WalkRules", "check", "content_skip", "read_file", "walk"]

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
class _Folder:
    """A folder to list: `path` as users see it ("" or ending in `/`), `key` relative to the rules' top."""

    path: str
    key: bytes
    rules: Rules
    inherited: Skipped | None  # the verdict of an ignored folder, entered for what a tool rule brings back


@dataclass(frozen=True, slots=True)
class _Entry:
    """One name in a folder, by what can be told of it without following it."""

    name: str
    mode: int
    sibling: Callable[[str], bool]
    inner: Callable[[str], bool]


_Verdict = Skipped | None


def walk(root: Path, rules: WalkRules) -> Iterator[Found | Skipped]:
    """Every file under `root` that may be indexed, and every skipped file or whole folder, in order of names.

    Links are never followed. A folder that cannot be listed gives one row with `UNREADABLE`: its files are unknown,
    not deleted. Nothing is raised for what is found on the disk; `root` itself must be a folder.
    """
    top = os.path.realpath(root)
    above, key = rules_for(Path(top))
    stack: list[Iterator[Found | Skipped | _Folder]] = [iter([_Folder("", key, above, None)])]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, _Folder):
            stack.append(iter(_list(top, item, rules)))
        else:
            yield item


def _list(top: str, folder: _Folder, rules: WalkRules) -> list[Found | Skipped | _Folder]:
    """What one folder holds, in order of names: rows for files, and for each folder to enter a `_Folder`."""
    absolute = os.path.join(top, folder.path)
    out: list[Found | Skipped | _Folder] = []
    try:
        with os.scandir(absolute) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return [Skipped(folder.path, SkipReason.GONE)]
    except OSError as error:
        return [Skipped(folder.path, SkipReason.UNREADABLE, error.strerror or "")]
    present = {entry.name for entry in entries}
    inside = folder.rules.entering(folder.key, present)
    here = _Folder(folder.path, folder.key, inside, folder.inherited)
    for entry in entries:
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            status = None if is_directory else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            out.append(Skipped(_printable(folder.path + entry.name), SkipReason.GONE))
            continue
        except OSError as error:
            out.append(Skipped(_printable(folder.path + entry.name), SkipReason.UNREADABLE, error.strerror or ""))
            continue
        mode = status.st_mode if status is not None else stat.S_IFDIR
        facts = _Entry(entry.name, mode, present.__contains__, _Inner(entry.path))
        verdict, next_folder = _decide(here, facts, rules)
        if next_folder is not None:
            out.append(next_folder)
        elif verdict is not None:
            out.append(verdict)
        elif status is not None:
            out.append(_sized(folder.path + entry.name, status, rules))
    return out


def check(root: Path, path: str, rules: WalkRules) -> Found | Skipped:
    """The verdict of `walk` on one path; see `Checker.check`. For many paths at once keep a `Checker`."""
    return Checker(root, rules).check(path)


class Checker:
    """Verdicts on single paths. Rules of folders are read once: make a new one after rule files may have changed."""

    def __init__(self, root: Path, rules: WalkRules) -> None:
        self._top = os.path.realpath(root)
        self._rules = rules
        above, key = rules_for(Path(self._top))
        self._folders: dict[str, _Folder | Skipped] = {"": _Folder("", key, above.entering(key), None)}

    def check(self, path: str) -> Found | Skipped:
        """The verdict of `walk` on `path`, relative to the root; under a skipped folder it is the folder's.

        A folder that the walk enters is `Found` with a trailing slash. A path that by its own words is not inside the
        root (absolute, `..`, empty parts) is `BAD_NAME`, one that does not exist `GONE`.
        """
        path = path.removesuffix("/")
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or (os.sep != "/" and os.sep in path):
            return Skipped(_printable(path), SkipReason.BAD_NAME, "not a path inside the folder")
        above, slash, name = path.rpartition("/")
        folder = self._enter(above + slash)
        if isinstance(folder, Skipped):
            return Skipped(_printable(path), folder.reason, folder.rule)
        verdict, inner = self._look(folder, name)
        if inner is None:
            return verdict
        return inner.inherited or verdict

    def _enter(self, path: str) -> _Folder | Skipped:
        """The folder `path` ("" or ending in `/`) with its rules, or why what lies under it is skipped."""
        known = self._folders.get(path)
        if known is not None:
            return known
        above, slash, name = path.removesuffix("/").rpartition("/")
        folder = self._enter(above + slash)
        if isinstance(folder, _Folder):
            verdict, inner = self._look(folder, name)
            if inner is not None:
                folder = _Folder(inner.path, inner.key, inner.rules.entering(inner.key), inner.inherited)
            else:
                # A file where a folder was asked for: nothing is under it.
                folder = verdict if isinstance(verdict, Skipped) else Skipped(path, SkipReason.GONE)
        self._folders[path] = folder
        return folder

    def _look(self, folder: _Folder, name: str) -> tuple[Found | Skipped, _Folder | None]:
        shown = folder.path + name
        if (bad := _bad_name(folder.path, name)) is not None:
            return Skipped(_printable(shown), SkipReason.BAD_NAME, bad), None
        absolute = os.path.join(self._top, shown)
        try:
            status = os.lstat(absolute)
        except (FileNotFoundError, NotADirectoryError):
            return Skipped(shown, SkipReason.GONE), None
        except OSError as error:
            return Skipped(shown, SkipReason.UNREADABLE, error.strerror or ""), None
        facts = _Entry(name, status.st_mode, _Inner(os.path.join(self._top, folder.path)), _Inner(absolute))
        verdict, inner = _decide(folder, facts, self._rules)
        if inner is not None:
            return Found(inner.path, 0, status.st_mtime_ns), inner
        return verdict or _sized(shown, status, self._rules), None


def _decide(folder: _Folder, entry: _Entry, rules: WalkRules) -> tuple[_Verdict, _Folder | None]:
    """Why `entry` is skipped (None: it is not, by its name and kind), and for a folder to enter what to list."""
    name = entry.name
    is_directory = stat.S_ISDIR(entry.mode)
    shown = folder.path + name + ("/" if is_directory else "")
    if (bad := _bad_name(folder.path, name)) is not None:
        return Skipped(_printable(shown), SkipReason.BAD_NAME, bad), None
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
        return None, _Folder(shown, key, folder.rules, None)
    if folder.rules.tool_opens(key):
        return None, _Folder(shown, key, folder.rules, verdict)
    return verdict, None


def _ruled_out(folder: _Folder, entry: _Entry, key: bytes, shown: str, rules: WalkRules) -> _Verdict:
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


def _sized(path: str, status: os.stat_result, rules: WalkRules) -> Found | Skipped:
    if status.st_size > rules.max_file_size:
        return Skipped(path, SkipReason.TOO_LARGE, f"{status.st_size} bytes, limit {rules.max_file_size}")
    return Found(path, status.st_size, status.st_mtime_ns)


def _bad_name(folder: str, name: str) -> str | None:
    """Why no file of this name can be opened and shown; None for a good name. Newlines are allowed."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "not UTF-8"
    if length > MAX_NAME_BYTES:
        return "name too long"
    return "path too long" if length + len(folder.encode()) > MAX_PATH_BYTES else None


def _printable(path: str) -> str:
    """The path with bytes that are not UTF-8 written as `\\xNN`, so that a row can always be stored and sent."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Inner:
    """Whether a name exists in a folder of the disk, asked only when it matters."""

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._folder, name))
