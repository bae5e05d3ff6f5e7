"""The workspace folders that a session has open: which name, address or path means which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from haversack import uris
from haversack.indexing import FolderIndex
from haversack.types import Folder, InvalidRequest


class Folders(dict[str, FolderIndex]):
    """Folder key to its index, in the order they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self._spelled: dict[str, PurePath] = {}  # folder key to its path as the client spells it

    @property
    def all(self) -> tuple[Folder, ...]:
        return tuple(index.folder for index in self.values())

    def put(self, index: FolderIndex, path: PurePath) -> None:
        """Take in an index whose folder the client spells as `path`."""
        self[index.folder.key] = index
        self._spelled[index.folder.key] = path

    def take(self, path: PurePath | None) -> Sequence[FolderIndex]:
        """Give up the folders that the client spells as `path`."""
        taken = [key for key, spelled in self._spelled.items() if spelled == path]
        for key in taken:
            del self._spelled[key]
        return [self.pop(key) for key in taken]

    def one(self, key: str) -> FolderIndex:
        """The folder called `key`, the first one for ""."""
        return self[key] if key else next(iter(self.values()))

    def some(self, key: str) -> Sequence[FolderIndex]:
        """The folder called `key`, all of them for ""."""
        return [self[key]] if key else [*self.values()]

    def free_key(self, name: str) -> str:
        """`name`, with a number behind it when another folder has it."""
        key, number = name, 2
        while key in self:
            key, number = f"{name}-{number}", number + 1
        return key

    def find(self, name: str) -> str:
        """The key of the folder that `name` (a URI, a path or a folder's name) means. Raises `InvalidRequest`."""
        if name in self:
            return name
        path = uris.to_path(name) or Path(name)
        for key, index in self.items():
            if path in (self._spelled[key], Path(index.folder.root)):
                return key
        raise InvalidRequest(
            f"There is no workspace folder {name!r}.",
            "Give the URI or the name of a folder of the workspace.",
            folders=[*self],
        )

    def locate(self, path: PurePath) -> tuple[str, str] | None:
        """The folder key and the path inside it; the innermost folder wins. Compared part by part, without the disk."""
        best: tuple[int, str, str] | None = None
        for key, index in self.items():
            for root in (self._spelled[key], PurePath(index.folder.root)):
                if path != root and path.is_relative_to(root) and (best is None or len(root.parts) > best[0]):
                    best = (len(root.parts), key, path.relative_to(root).as_posix())
        return best[1:] if best else None
