"""Policy files on the disk: read when they change, and never through a link that leads out of its folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from haversack.policy.document import MAX_TEXT, Document, Kind, parse_text, parse_value, refused
from haversack.policy.layers import Merged, merge
from haversack.types import Folder, Settings

# Where a workspace folder has its policy.
WORKSPACE_FILE = ".haversack/policy.json"

# UTF-8 has at most four bytes for a character.
MAX_BYTES = 4 * MAX_TEXT

_Version = tuple[str, int, int, int, int, int]


class PolicyFiles:
    """The user's file and those of the workspace's folders. Safe on any thread; every call may touch the disk."""

    def __init__(self, user_file: Path | None = None) -> None:
        self.user_file = user_file
        self._read: dict[str, tuple[_Version, Document]] = {}
        self._merged: tuple[list[Document], Settings, bool, Merged] | None = None

    def merged(
        self,
        folders: Sequence[Folder],
        settings: Settings,
        *,
        trusted: bool,
        request: Mapping[str, object] | None = None,
    ) -> Merged:
        """The policy of all layers as they are now, with that of a request on top."""
        documents = [*self._user_layer(), *(each for folder in folders if (each := self._workspace_layer(folder)))]
        if request is not None:
            documents.append(parse_value(request, Kind.REQUEST, "policy of the request"))
            return merge(documents, settings, trusted=trusted)
        known = self._merged
        if known is not None and known[1:3] == (settings, trusted) and _same(known[0], documents):
            return known[3]
        result = merge(documents, settings, trusted=trusted)
        self._merged = (documents, settings, trusted, result)
        return result

    def check(self, text: str, folder: Folder | None, settings: Settings, *, trusted: bool) -> Merged:
        """The policy with `text` in place of the file of `folder` (None: of the user), above the user's own."""
        if folder is None:
            return merge([parse_text(text, Kind.USER, _USER)], settings)
        edited = parse_text(text, Kind.WORKSPACE, _name(folder))
        return merge([*self._user_layer(), edited], settings, trusted=trusted)

    def _user_layer(self) -> list[Document]:
        if self.user_file is None:
            return []
        found = self._load(str(self.user_file), None, Kind.USER, _USER)
        return [] if found is None else [found]

    def _workspace_layer(self, folder: Folder) -> Document | None:
        path = os.path.join(folder.root, *WORKSPACE_FILE.split("/"))
        return self._load(path, folder.root, Kind.WORKSPACE, _name(folder))

    def _load(self, path: str, root: str | None, kind: Kind, layer: str) -> Document | None:
        """The document at `path`, None when there is none. Links may lead anywhere inside `root`."""
        real = os.path.realpath(path)
        if root is not None and not Path(real).is_relative_to(root):
            message = f"The {layer} is a link that leads out of its folder, so it is not read."
            return refused("outside_folder", message, kind, layer)
        try:
            found = os.stat(real, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR) and not _hangs(path):
                return None
            return _unreadable(error.strerror or "it cannot be reached", kind, layer)
        version = (real, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)
        known = self._read.get(path)
        if known is None or known[0] != version or known[1].layer != layer:
            known = self._read[path] = (version, _parse(real, kind, layer))
        return known[1]


_USER = "user's policy"


def _same(some: Sequence[Document], others: Sequence[Document]) -> bool:
    """Whether nothing was read anew: a document that did not change is the same object."""
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))


def _name(folder: Folder) -> str:
    return f"policy of {folder.key}"


def _hangs(path: str) -> bool:
    """Whether a missing file is the end of a link: somebody wanted a policy to be there."""
    folder = os.path.dirname(path)
    return os.path.islink(path) or (os.path.islink(folder) and not os.path.exists(folder))


def _parse(path: str, kind: Kind, layer: str) -> Document:
    try:
        data = _read_bytes(path)
    except OSError as error:
        return _unreadable(error.strerror or type(error).__name__, kind, layer)
    if len(data) > MAX_BYTES:
        return refused("too_large", f"The {layer} has more than {MAX_TEXT:,} characters.", kind, layer)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _unreadable(f"byte {error.start:,} is not UTF-8", kind, layer)
    return parse_text(text, kind, layer)


def _read_bytes(path: str) -> bytes:
    """At most one byte more than is allowed. Raises OSError, also for what is no plain file: a pipe would never end."""
    # A link put there since the path was resolved is not followed, and opening a pipe does not wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        # Looked at before a file object is made of it: of a directory none can be, and it would stay open.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _unreadable(why: str, kind: Kind, layer: str) -> Document:
    return refused("unreadable", f"The {layer} can't be read: {why}.", kind, layer)
