"""The requests about core memories: convert, call, convert back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from haversack.lsp import memories as wire
from haversack.lsp.dispatch import Handler
from haversack.memory import Memory, Scope
from haversack.memory.store import Merge
from haversack.remembering import Exported, Imported
from haversack.session import Session
from haversack.types import Folder


class MemoryHandlers:
    """Those of one connection, over one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def requests(self) -> Mapping[str, Handler]:
        return {
            wire.ADD: self.add,
            wire.UPDATE: self.update,
            wire.DELETE: self.delete,
            wire.SEARCH: self.search,
            wire.LIST: self.list,
            wire.EXPORT: self.export,
            wire.IMPORT: self.take_in,
        }

    async def add(self, params: wire.MemoryAddParams, unknown: tuple[str, ...]) -> wire.MemoryResult:
        del unknown
        kept = await self._session.memories.add(
            params.scope,
            self._folder(params.workspace_folder),
            category=params.category,
            title=params.title,
            content=params.content,
            keywords=params.keywords,
            private=params.private,
            origins=params.origins,
        )
        return result(kept, self._session.folders)

    async def update(self, params: wire.MemoryUpdateParams, unknown: tuple[str, ...]) -> wire.MemoryResult:
        del unknown
        changed = await self._session.memories.update(
            params.id,
            self._folder(params.workspace_folder),
            category=params.category,
            title=params.title,
            content=params.content,
            keywords=params.keywords,
            private=params.private,
            origins=params.origins,
        )
        return result(changed, self._session.folders)

    async def delete(self, params: wire.MemoryParams, unknown: tuple[str, ...]) -> wire.MemoryResult:
        del unknown
        gone = await self._session.memories.delete(params.id, self._folder(params.workspace_folder))
        return result(gone, self._session.folders)

    async def search(self, params: wire.MemorySearchParams, unknown: tuple[str, ...]) -> wire.MemoriesResult:
        del unknown
        folder = self._folder(params.workspace_folder)
        return found(await self._session.memories.search(params.query, folder, params.limit), self._session.folders)

    async def list(self, params: wire.MemoriesParams, unknown: tuple[str, ...]) -> wire.MemoriesResult:
        del unknown
        return listed(await self._session.memories.list(self._folder(params.workspace_folder)), self._session.folders)

    async def export(self, params: wire.MemoriesParams, unknown: tuple[str, ...]) -> wire.MemoryExportResult:
        del unknown
        return exported(await self._session.memories.export(self._folder(params.workspace_folder)))

    async def take_in(self, params: wire.MemoriesParams, unknown: tuple[str, ...]) -> wire.MemoryImportResult:
        del unknown
        return imported(await self._session.memories.take_in(self._folder(params.workspace_folder)))

    def _folder(self, name: str | None) -> str:
        return self._session.find_folder(name) if name else ""


def result(memory: Memory, folders: Sequence[Folder], score: float | None = None) -> wire.MemoryResult:
    uri = next((each.uri for each in folders if each.root == memory.project), None)
    return wire.MemoryResult(
        id=memory.id,
        category=memory.category.value.capitalize(),
        title=memory.title,
        content=memory.content,
        keywords=memory.keywords,
        scope=memory.scope.value,
        workspace_folder=uri if memory.scope is Scope.PROJECT else None,
        created=memory.created,
        updated=memory.updated,
        private=memory.private,
        origins=memory.origins,
        score=score,
    )


def listed(memories: Sequence[Memory], folders: Sequence[Folder]) -> wire.MemoriesResult:
    return wire.MemoriesResult(tuple(result(each, folders) for each in memories))


def found(memories: Sequence[tuple[Memory, float]], folders: Sequence[Folder]) -> wire.MemoriesResult:
    return wire.MemoriesResult(tuple(result(each, folders, score) for each, score in memories))


def exported(done: Exported) -> wire.MemoryExportResult:
    return wire.MemoryExportResult(done.paths, tuple(wire.MemoryNote(*each) for each in done.left_out))


def imported(done: Imported) -> wire.MemoryImportResult:
    ids = {state: tuple(memory.id for memory, became in done.done if became is state) for state in Merge}
    bad = tuple(wire.MemoryNote(each.path, each.reason) for each in done.bad)
    return wire.MemoryImportResult(ids[Merge.ADDED], ids[Merge.UPDATED], ids[Merge.UNCHANGED], ids[Merge.KEPT], bad)
