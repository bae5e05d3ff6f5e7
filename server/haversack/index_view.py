"""One folder's index as a request may see it: other tenants' documents are in no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from haversack_index.documents import Access
from haversack_index.types import FileRecord, IndexStatus, Query, Reference, SearchResult, Symbol

# Files asked for in place of one, since some of those found may be hidden.
MORE = 3


class Index(Protocol):
    """The reading side of one folder's index, as far as gatherers use it."""

    @property
    def generation(self) -> int: ...
    def status(self) -> IndexStatus: ...
    def search(self, query: Query) -> SearchResult: ...
    def definitions(self, names: Sequence[str], limit: int = 50) -> tuple[Symbol, ...]: ...
    def definers(self, names: Sequence[str], most: int) -> Mapping[str, frozenset[str]]: ...
    def references(self, names: Sequence[str], limit: int = 50) -> tuple[Reference, ...]: ...
    def symbols(self, path: str) -> tuple[Symbol, ...]: ...
    def file(self, path: str) -> FileRecord | None: ...
    def files(self) -> tuple[FileRecord, ...]: ...
    def imports(self, path: str) -> tuple[str, ...]: ...
    def paths_matching(self, text: str, limit: int = 20) -> Sequence[str]: ...
    def copies(self, hashes: Sequence[str]) -> Sequence[tuple[str, str]]: ...
    def document(self, path: str, content_hash: str, access: Access) -> FileRecord | None: ...
    def sections(self, path: str, content_hash: str, access: Access) -> tuple[Symbol, ...]: ...


@dataclass(frozen=True, slots=True)
class VisibleIndex:
    """An index without the files that `hides` names."""

    index: Index
    hides: Callable[[str], bool]

    @property
    def generation(self) -> int:
        return self.index.generation

    def status(self) -> IndexStatus:
        return self.index.status()

    def search(self, query: Query) -> SearchResult:
        found = self.index.search(replace(query, max_files=MORE * query.max_files))
        seen = tuple(file for file in found.files if not self.hides(file.path))
        return replace(found, files=seen[: query.max_files])

    def definitions(self, names: Sequence[str], limit: int = 50) -> tuple[Symbol, ...]:
        found = self.index.definitions(names, MORE * limit)
        return tuple(symbol for symbol in found if not self.hides(symbol.span.path))[:limit]

    def definers(self, names: Sequence[str], most: int) -> Mapping[str, frozenset[str]]:
        found = self.index.definers(names, MORE * most)
        seen = {name: frozenset(path for path in paths if not self.hides(path)) for name, paths in found.items()}
        return {name: paths for name, paths in seen.items() if 0 < len(paths) <= most}

    def references(self, names: Sequence[str], limit: int = 50) -> tuple[Reference, ...]:
        found = self.index.references(names, MORE * limit)
        return tuple(use for use in found if not self.hides(use.path))[:limit]

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        return () if self.hides(path) else self.index.symbols(path)

    def file(self, path: str) -> FileRecord | None:
        return None if self.hides(path) else self.index.file(path)

    def files(self) -> tuple[FileRecord, ...]:
        return tuple(record for record in self.index.files() if not self.hides(record.path))

    def imports(self, path: str) -> tuple[str, ...]:
        return () if self.hides(path) else self.index.imports(path)

    def paths_matching(self, text: str, limit: int = 20) -> Sequence[str]:
        return [path for path in self.index.paths_matching(text, MORE * limit) if not self.hides(path)][:limit]

    def copies(self, hashes: Sequence[str]) -> Sequence[tuple[str, str]]:
        return self.index.copies(hashes)  # for rules on hidden files too: it names them to no reader

    def document(self, path: str, content_hash: str, access: Access) -> FileRecord | None:
        return self.index.document(path, content_hash, access)

    def sections(self, path: str, content_hash: str, access: Access) -> tuple[Symbol, ...]:
        return self.index.sections(path, content_hash, access)
