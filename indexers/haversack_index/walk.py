"""Which files of a workspace folder may be read: by walking it, or asked for one path; both give the same verdicts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from haversack_index.contents import CannotRead, content_skip, read_file
from haversack_index.ignore import rules_for
from haversack_index.types import SkipReason
from haversack_index.verdicts import (
    Entry,
    Folder,
    Found,
    Inside,
    Skipped,
    WalkRules,
    bad_name,
    decide,
    printable,
    sized,
)

__all__ = ["CannotRead", "Checker", "Found", "Skipped", "WalkRules", "check", "content_skip", "read_file", "walk"]


def walk(root: Path, rules: WalkRules) -> Iterator[Found | Skipped]:
    """Every file under `root` that may be indexed, and every skipped file or whole folder, in order of names.

    Links are never followed. A folder that cannot be listed gives one row with `UNREADABLE`: its files are unknown,
    not deleted. Nothing is raised for what is found on the disk; `root` itself must be a folder.
    """
    top = os.path.realpath(root)
    above, key = rules_for(Path(top))
    for item in _visit(top, Folder("", key, above, None), rules):
        if not isinstance(item, Folder):
            yield item


def _visit(top: str, first: Folder, rules: WalkRules) -> Iterator[Found | Skipped | Folder]:
    """The rows under `first` and, each before its own rows, the folders that are entered."""
    stack: list[Iterator[Found | Skipped | Folder]] = [iter([first])]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            continue
        if isinstance(item, Folder):
            stack.append(iter(_list(top, item, rules)))
        yield item


def _list(top: str, folder: Folder, rules: WalkRules) -> list[Found | Skipped | Folder]:
    """What one folder holds, in order of names: rows for files, and for each folder to enter a `Folder`."""
    absolute = os.path.join(top, folder.path)
    out: list[Found | Skipped | Folder] = []
    try:
        with os.scandir(absolute) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return [Skipped(folder.path, SkipReason.GONE)]
    except OSError as error:
        return [Skipped(folder.path, SkipReason.UNREADABLE, error.strerror or "")]
    present = {entry.name for entry in entries}
    inside = folder.rules.entering(folder.key, present)
    here = Folder(folder.path, folder.key, inside, folder.inherited)
    for entry in entries:
        try:
            is_directory = entry.is_dir(follow_symlinks=False)
            status = None if is_directory else entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            out.append(Skipped(printable(folder.path + entry.name), SkipReason.GONE))
            continue
        except OSError as error:
            out.append(Skipped(printable(folder.path + entry.name), SkipReason.UNREADABLE, error.strerror or ""))
            continue
        mode = status.st_mode if status is not None else stat.S_IFDIR
        facts = Entry(entry.name, mode, present.__contains__, Inside(entry.path))
        verdict, next_folder = decide(here, facts, rules)
        if next_folder is not None:
            out.append(next_folder)
        elif verdict is not None:
            out.append(verdict)
        elif status is not None:
            out.append(sized(folder.path + entry.name, status, rules))
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
        self._above = Folder("", key, above, None)
        self._folders: dict[str, Folder | Skipped] = {"": Folder("", key, above.entering(key), None)}

    def check(self, path: str) -> Found | Skipped:
        """The verdict of `walk` on `path`, relative to the root; under a skipped folder it is the folder's.

        A folder that the walk enters is `Found` with a trailing slash, size and time 0. A path that by its own words
        is not inside the root (absolute, `..`, empty parts) is `BAD_NAME`. One that does not exist is `GONE`, unless
        its name would have been skipped anyway: then it gets that reason, which tells nothing about the disk.
        """
        path = path.removesuffix("/")
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or (os.sep != "/" and os.sep in path):
            return Skipped(printable(path), SkipReason.BAD_NAME, "not a path inside the folder")
        above, slash, name = path.rpartition("/")
        folder = self._enter(above + slash)
        if isinstance(folder, Skipped):
            return Skipped(printable(path), folder.reason, folder.rule)
        verdict, inner = self._look(folder, name)
        if inner is None:
            return verdict
        return inner.inherited or verdict

    def under(self, path: str) -> Iterator[Found | Skipped]:
        """The rows of `walk` under the folder `path` ("" for the root), and the entered folders as from `check`."""
        above, slash, name = path.removesuffix("/").rpartition("/")
        folder = self._above if not name else self._enter(above + slash)
        if isinstance(folder, Skipped):
            yield Skipped(printable(path), folder.reason, folder.rule)
            return
        inner = folder
        if name:
            verdict, inner = self._look(folder, name)
            if inner is None:
                yield verdict
                return
        for item in _visit(self._top, inner, self._rules):
            yield Found(item.path, 0, 0) if isinstance(item, Folder) else item

    def _enter(self, path: str) -> Folder | Skipped:
        """The folder `path` ("" or ending in `/`) with its rules, or why what lies under it is skipped."""
        known = self._folders.get(path)
        if known is not None:
            return known
        above, slash, name = path.removesuffix("/").rpartition("/")
        folder = self._enter(above + slash)
        if isinstance(folder, Folder):
            verdict, inner = self._look(folder, name, stat.S_IFDIR)
            if inner is not None:
                folder = Folder(inner.path, inner.key, inner.rules.entering(inner.key), inner.inherited)
            else:
                # A file where a folder was asked for: nothing is under it.
                folder = verdict if isinstance(verdict, Skipped) else Skipped(path, SkipReason.GONE)
        self._folders[path] = folder
        return folder

    def _look(
        self, folder: Folder, name: str, kind_if_gone: int = stat.S_IFREG
    ) -> tuple[Found | Skipped, Folder | None]:
        shown = folder.path + name
        if (bad := bad_name(folder.path, name)) is not None:
            return Skipped(printable(shown), SkipReason.BAD_NAME, bad), None
        absolute = os.path.join(self._top, shown)
        status = None
        try:
            status = os.lstat(absolute)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            return Skipped(shown, SkipReason.UNREADABLE, error.strerror or ""), None
        mode = status.st_mode if status is not None else kind_if_gone
        facts = Entry(name, mode, Inside(os.path.join(self._top, folder.path)), Inside(absolute))
        verdict, inner = decide(folder, facts, self._rules)
        if status is None:
            return verdict or Skipped(shown, SkipReason.GONE), None
        if inner is not None:
            return Found(inner.path, 0, 0), inner
        return verdict or sized(shown, status, self._rules), None
