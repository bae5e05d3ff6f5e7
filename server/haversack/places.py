"""Turns what a user wrote for a path into places inside the workspace folders, and refuses everything else.

Refusals do not depend on whether the target exists, so a mention cannot be used to probe the disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from haversack import uris
from haversack.types import Folder, HaversackError


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder in workspace folder `folder`; `path` is "" for the folder itself.

    A document outside every folder (an unsaved `untitled:` buffer) has `folder` "" and its URI as `path`.
    """

    folder: str
    path: str
    is_folder: bool = False


def outside(value: str) -> HaversackError:
    """The one refusal for everything that is not inside a workspace folder, existing or not."""
    return HaversackError(
        "path_outside_workspace",
        f"{value!r} is outside the workspace.",
        "Name a file inside one of the workspace folders, or add its folder to the workspace.",
        path=value,
    )


# A home folder (`~`, `~name/`), a drive (`C:`), a network share (`\\server`, `//server`).
_HOME = re.compile(r"~(?:$|[/\\])|~[\w.-]+[/\\]")
_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|$|[^\d\\/])")
_SHARE = re.compile(r"[\\/]{2}")


def find_places(
    value: str, folders: Sequence[Folder], prefer: str, is_open: Callable[[str, str], bool]
) -> tuple[Place, ...]:
    """Places that `value` names exactly, the preferred folder's alone if it is among them; () when there are none.

    `is_open(folder, path)` tells of documents that live only in the editor.
    Raises `path_outside_workspace` for anything that leaves the folders, by spelling or through a link.
    """
    spellings = _spellings(value)
    absolute = [each for each in spellings if _is_absolute(each)]
    if absolute:
        place = _absolute(value, absolute[-1], folders, is_open)
        return (place,) if place else ()
    for spelling in spellings:
        places = tuple(_in_folders(value, spelling, _preferred_first(folders, prefer), is_open))
        if places:
            preferred = tuple(place for place in places if place.folder == prefer)
            return preferred or places
    # The form `root-name/path` comes after exact paths: a folder may hold a directory named like another folder.
    for spelling in spellings:
        first, _, rest = spelling.partition("/")
        named = [folder for folder in folders if first in (folder.key, Path(folder.root).name)]
        places = tuple(_in_folders(value, rest, named, is_open))
        if places:
            return places
    return ()


def _spellings(value: str) -> tuple[str, ...]:
    """`value` as written, with its percent signs decoded once, and with backslashes as separators.

    Every spelling is checked before any is looked up: one that leaves the workspace condemns the others.
    """
    if value.startswith("file:"):
        path = uris.to_path(value)
        if path is None:
            raise outside(value)
        written = [str(path)]
    else:
        written = [value, unquote(value)]
        written += [each.replace("\\", "/") for each in written]
    for spelling in written:
        if "\0" in spelling or _HOME.match(spelling):
            raise outside(value)
        if not _is_absolute(spelling) and os.path.normpath(spelling).split(os.sep)[0] == os.pardir:
            raise outside(value)
        if _DRIVE.match(spelling) and os.name != "nt":
            raise outside(value)
    return tuple(dict.fromkeys(os.path.normpath(each).replace(os.sep, "/") for each in written))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_SHARE.match(path)) or bool(os.name == "nt" and _DRIVE.match(path))


def _absolute(
    value: str, spelling: str, folders: Sequence[Folder], is_open: Callable[[str, str], bool]
) -> Place | None:
    for folder in folders:
        relative = relative_to(spelling, folder.root)
        if relative is not None:
            return next(_in_folders(value, relative, (folder,), is_open), None)
    # The workspace may have been opened through a link: compare where the path really leads.
    return _real_place(value, spelling, folders)


def _in_folders(
    value: str, relative: str, folders: Sequence[Folder], is_open: Callable[[str, str], bool]
) -> Iterator[Place]:
    for folder in folders:
        if is_open(folder.key, relative):
            yield Place(folder.key, relative)
            continue
        full = os.path.join(folder.root, relative)
        if os.path.lexists(full):
            place = _real_place(value, full, (folder, *folders))
            if place is not None:
                yield place


def _real_place(value: str, path: str, folders: Sequence[Folder]) -> Place | None:
    """Where a path really leads; None when that does not exist, or changes while it is looked at."""
    try:
        real = os.path.realpath(path)
    except OSError:  # a link that was there was not when it was read
        return None
    for folder in folders:
        relative = relative_to(real, folder.root)
        if relative is not None:
            return Place(folder.key, relative, os.path.isdir(real)) if os.path.exists(real) else None
    raise outside(value)


def relative_to(path: str, root: str) -> str | None:
    """`path` below `root` with `/` between parts, or None; compared part by part, so `/ws-evil` is not in `/ws`."""
    if os.name == "nt":
        if os.path.normcase(path) == os.path.normcase(root):
            return ""
        parts = PurePosixPath(os.path.normcase(path).replace("\\", "/"))
        base = PurePosixPath(os.path.normcase(root).replace("\\", "/"))
        return path.replace("\\", "/")[len(str(base)) :].lstrip("/") if parts.is_relative_to(base) else None
    pure = PurePosixPath(path)
    if not pure.is_relative_to(root):
        return None
    relative = str(pure.relative_to(root))
    return "" if relative == "." else relative


def _preferred_first(folders: Sequence[Folder], prefer: str) -> list[Folder]:
    return sorted(folders, key=lambda folder: folder.key != prefer)
