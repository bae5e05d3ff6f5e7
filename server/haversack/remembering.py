"""Core memories as editors and people ask for them: by workspace folder, off the event loop, in files for a team."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from haversack.memory import Memory, MemoryStore, Scope, files
from haversack.memory.store import Merge
from haversack.policy.privacy import Privacy
from haversack.policy.secrets import without_secrets
from haversack.types import Folder, HaversackError, InvalidRequest, Snapshot

Run = Callable[..., Awaitable[Any]]
"""Calls a function on a thread."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Paths that were written, and what stays on this machine with the reason: ids and no words."""

    paths: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Imported:
    done: tuple[tuple[Memory, Merge], ...]
    bad: tuple[files.BadFile, ...]


class Memories:
    """The memories of one session. A `folder` is a folder's key, or "" for all of them (the only one, to write to)."""

    def __init__(self, store: MemoryStore | None, snapshot: Callable[[], Snapshot], run: Run) -> None:
        self.store = store
        self._snapshot = snapshot
        self._run = run

    async def list(self, folder: str = "") -> tuple[Memory, ...]:
        """The user's memories and those of the folder, oldest first."""
        return await self._run(self._kept().list, self._roots(folder))

    async def search(self, query: str, folder: str = "", limit: int = 10) -> tuple[tuple[Memory, float], ...]:
        """Those that speak of `query`, best first, with scores in 0..1."""
        return await self._run(self._kept().search, query, self._roots(folder), limit)

    async def add(self, scope: str, folder: str = "", **fields: Any) -> Memory:
        """Fields as `MemoryStore.add` takes them."""
        snapshot = self._snapshot()
        project = self._one(folder, snapshot).root if scope.lower() == Scope.PROJECT and snapshot.folders else ""
        return await self._run(partial(self._kept().add, scope=scope, project=project, now=snapshot.now, **fields))

    async def update(self, memory_id: str, folder: str = "", **fields: Any) -> Memory:
        """Fields as `MemoryStore.update` takes them."""
        given = {"projects": self._roots(folder), "now": self._snapshot().now, **fields}
        return await self._run(partial(self._kept().update, memory_id, **given))

    async def delete(self, memory_id: str, folder: str = "") -> Memory:
        return await self._run(partial(self._kept().delete, memory_id, projects=self._roots(folder)))

    async def export(self, folder: str = "") -> Exported:
        """Writes the folder's memories into its `.haversack/memory`, for whoever reads the repository."""
        snapshot = self._snapshot()
        return await self._run(_export, self._kept(), self._one(folder, snapshot), snapshot)

    async def take_in(self, folder: str = "") -> Imported:
        """Takes in the memories of the folder's `.haversack/memory`. Raises `untrusted_workspace`."""
        snapshot = self._snapshot()
        if not snapshot.trusted:
            message = "The workspace is not trusted, and memories steer what a model does."
            raise HaversackError("untrusted_workspace", message, "Trust the workspace, then import.")
        return await self._run(_take_in, self._kept(), self._one(folder, snapshot), snapshot)

    def _kept(self) -> MemoryStore:
        if self.store is None:
            message = "The file of memories cannot be opened."
            raise HaversackError("memory_unavailable", message, "`haversack doctor` says where it is.")
        return self.store

    def _roots(self, folder: str) -> tuple[str, ...]:
        return tuple(each.root for each in self._snapshot().folders if folder in ("", each.key))

    def _one(self, folder: str, snapshot: Snapshot) -> Folder:
        found = [each for each in snapshot.folders if folder in ("", each.key)]
        if len(found) != 1:
            what = "several folders are open" if found else "no folder is open"
            message = f"workspaceFolder: {what}, and a project's memories belong to one."
            raise InvalidRequest(message, "Name the folder.", field="workspaceFolder")
        return found[0]


def _export(store: MemoryStore, folder: Folder, snapshot: Snapshot) -> Exported:
    privacy = Privacy.compile(snapshot.settings, tuple(each.key for each in snapshot.folders), snapshot.policy)
    written: list[Memory] = []
    left_out: list[tuple[str, str]] = []
    for memory in store.list((folder.root,)):
        if memory.scope is not Scope.PROJECT:
            continue
        reason = _why_not(memory, privacy)
        if reason:
            left_out.append((memory.id, reason))
        else:
            origins = tuple(origin.removeprefix(f"{folder.key}/") for origin in memory.origins)
            written.append(replace(memory, origins=origins))
    return Exported(files.write(Path(folder.root), written) if written else (), tuple(left_out))


def _why_not(memory: Memory, privacy: Privacy) -> str:
    """Why a memory may not go where anybody with the repository reads it, and every model."""
    if memory.private:
        return "private"
    if any(privacy.restricts_origin(origin) for origin in memory.origins):
        return "derived from restricted files"
    text = "\n".join((memory.title, *memory.keywords, memory.content))
    return "holds a secret" if without_secrets(text) != text else ""


def _take_in(store: MemoryStore, folder: Folder, snapshot: Snapshot) -> Imported:
    found, bad = files.read(Path(folder.root), folder.root, snapshot.now)
    # A file names origins as paths in its folder; those of other folders keep their name.
    others = {each.key for each in snapshot.folders if each.key != folder.key}
    named: Sequence[Memory] = [
        replace(
            memory,
            origins=tuple(
                origin if origin.split("/", 1)[0] in others else f"{folder.key}/{origin}" for origin in memory.origins
            ),
        )
        for memory in found
    ]
    return Imported(store.merge(named), bad)
