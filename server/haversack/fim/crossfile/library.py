"""What the search for other files' lines asks of the world: paths, lines and definitions, each answered from memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from haversack.fim.crossfile.imports import Paths
from haversack.workspace import Workspace
from haversack_index.types import Symbol

# Definitions asked of the index for all the names near a cursor.
_MOST_DEFINITIONS = 200
_MOST_FOLDERS = 16
_KEPT_PATHS: dict[str, tuple[int, Paths]] = {}


class Library(Protocol):
    def paths(self) -> Paths: ...
    def lines(self, path: str) -> Sequence[str]:
        """The lines of a file as it is now, () when it cannot be read."""
        ...

    def identity(self, path: str) -> str:
        """A key that changes with the text of the file; what is told from a text is kept by it."""
        ...

    def symbols(self, path: str) -> Sequence[Symbol]: ...
    def definitions(self, names: Sequence[str]) -> Sequence[Symbol]: ...
    def definers(self, names: Sequence[str], most: int) -> Mapping[str, frozenset[str]]:
        """The files that define each name, for names that no more than `most` files define."""
        ...


class WorkspaceLibrary:
    """One folder of a workspace: unsaved buffers answer for their files."""

    def __init__(self, folder: str, workspace: Workspace) -> None:
        self._folder = folder
        self._workspace = workspace
        self._paths: Paths | None = None

    def paths(self) -> Paths:
        index = self._workspace.indexes.get(self._folder)
        if index is None:
            return Paths(())
        if self._paths is not None:
            return self._paths
        if self._workspace.gate.tenants:  # what one tenant may see of the paths is not for the next
            self._paths = Paths([record.path for record in index.files()])
            return self._paths
        root = next(folder.root for folder in self._workspace.snapshot.folders if folder.key == self._folder)
        known = _KEPT_PATHS.get(root)
        if known is None or known[0] != index.generation:
            known = (index.generation, Paths([record.path for record in index.files()]))
            _KEPT_PATHS[root] = known
            while len(_KEPT_PATHS) > _MOST_FOLDERS:
                _KEPT_PATHS.pop(next(iter(_KEPT_PATHS)), None)
        self._paths = known[1]
        return known[1]

    def lines(self, path: str) -> Sequence[str]:
        file = self._workspace.read(self._folder, path)
        return file.lines if file is not None else ()

    def identity(self, path: str) -> str:
        file = self._workspace.read(self._folder, path)
        return f"{self._folder}\0{path}\0{file.content_hash}" if file is not None else ""

    def symbols(self, path: str) -> Sequence[Symbol]:
        return self._workspace.symbols(self._folder, path)

    def definitions(self, names: Sequence[str]) -> Sequence[Symbol]:
        return [each.symbol for each in self._workspace.definitions(self._folder, names, _MOST_DEFINITIONS)]

    def definers(self, names: Sequence[str], most: int) -> Mapping[str, frozenset[str]]:
        index = self._workspace.indexes.get(self._folder)
        found = dict(index.definers(names, most)) if index is not None else {}
        wanted = set(names)
        for parsed in self._workspace.overlay(self._folder):
            for name in wanted.intersection(symbol.name for symbol in parsed.symbols):
                found[name] = found.get(name, frozenset()) | {parsed.path}
        return found
