"""A repository held in memory, answering as an index does."""

from __future__ import annotations

from collections.abc import Sequence

from cursors import Case

from haversack.fim.crossfile.imports import Paths
from haversack_index.types import Symbol


class MemoryLibrary:
    def __init__(self, case: Case, paths: Paths) -> None:
        self._case = case
        self._paths = paths

    def paths(self) -> Paths:
        return self._paths

    def lines(self, path: str) -> Sequence[str]:
        return self._case.lines if path == self._case.path else self._case.repository.texts.get(path, ())

    def identity(self, path: str) -> str:
        return f"{self._case.repository.name}/{path}"

    def symbols(self, path: str) -> Sequence[Symbol]:
        parsed = self._case.repository.parsed.get(path)
        return parsed.symbols if parsed is not None else ()

    def definitions(self, names: Sequence[str]) -> Sequence[Symbol]:
        repository = self._case.repository
        return [
            symbol
            for name in names
            for path in sorted(repository.defined.get(name, ()))
            for symbol in repository.parsed[path].symbols
            if symbol.name == name
        ]

    def definers(self, names: Sequence[str], most: int) -> dict[str, frozenset[str]]:
        found = {name: frozenset(self._case.repository.defined.get(name, ())) for name in names}
        return {name: paths for name, paths in found.items() if 0 < len(paths) <= most}
