"""The one place where things change: folders, documents, settings and diagnostics of one client.

Every question gets a frozen `Snapshot` at the moment it is asked and never sees later changes. The language server
and the command line use the same class. Its methods run on the event loop, and what may block on the session's threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Literal, Self

import apsw
import platformdirs

from haversack import config, pipeline, selecting, uris
from haversack.config import Layer, Scope
from haversack.conversations import Conversations
from haversack.documents import Documents, Encoding
from haversack.fim.complete import complete
from haversack.fim.nouns import FimBundle, FimRequest
from haversack.folders import Folders
from haversack.indexing import FolderIndex, Indexing, OnStatus
from haversack.local_index import LocalIndexing
from haversack.memory import MemoryStore, users_file
from haversack.pausing import Line, Pausing
from haversack.policy.confinement import confined, may_embed
from haversack.policy.documents import DocumentGate
from haversack.policy.layers import Merged
from haversack.policy.loading import WORKSPACE_FILE, PolicyFiles
from haversack.record_form import Record
from haversack.recorder import Recorder, Verification
from haversack.records import Records
from haversack.remembering import Memories
from haversack.text_cache import TextCache
from haversack.types import (
    Bundle,
    Diagnostic,
    Folder,
    HaversackError,
    OpenedRecord,
    Policy,
    Problem,
    Request,
    Selected,
    Settings,
    Snapshot,
)
from haversack.workspace import Workspace
from haversack_index.types import FileRecord, IndexStatus

# Threads that read files and query indexes for requests: more would only fight for the interpreter lock.
READING_THREADS = 4

# Seconds that a first question waits for a reader, without which no words are counted; opening takes a tenth of that.
READER_WAIT = 1.0


def open_session(cache_dir: Path | None = None) -> Session:
    """A session on the real index, line and memories. `cache_dir` is the platform's by default."""
    cache = cache_dir or platformdirs.user_cache_path("haversack")
    memory = None
    # Memories that cannot be opened cost themselves, not the session.
    with contextlib.suppress(OSError, apsw.Error, HaversackError):
        memory = MemoryStore(users_file())
    recorder = Recorder(Records(platformdirs.user_data_path("haversack") / "records"))
    policies = PolicyFiles(platformdirs.user_config_path("haversack") / "policy.json")
    return Session(indexing=LocalIndexing(cache), memory=memory, recorder=recorder, cache_dir=cache, policies=policies)


class Session:
    """What one client has open. `async with Session(...)` closes everything it started."""

    def __init__(
        self,
        *,
        indexing: Indexing,
        line: Line = pipeline,
        memory: MemoryStore | None = None,
        recorder: Recorder | None = None,
        cache_dir: Path | None = None,
        policies: PolicyFiles | None = None,
        on_status: OnStatus | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.documents = Documents()
        self.settings = Settings()
        self.settings_problems: tuple[Problem, ...] = ()
        self.trusted = True
        self.policy = Policy()  # of the files, as last read
        self.on_status: OnStatus = on_status or (lambda folder, status: None)
        self.conversations = Conversations()
        self.paused = Pausing(line)
        self._indexing = indexing
        self._recorder = recorder
        self._cache_dir = cache_dir
        self._policies = policies or PolicyFiles()
        self._clock = clock
        self._folders = Folders()
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._pool = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="haversack-read")
        self._texts = TextCache()
        self.memories = Memories(memory, self.snapshot, self._read)
        self._closing: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop workers and watchers; calls still running on threads are left behind."""
        self.conversations.close()
        self.paused.turns.clear()
        await asyncio.gather(*(index.stop() for index in self._folders.values()), *self._closing)
        if self._recorder is not None:
            await self._recorder.close()
        self._folders.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # --- questions ---

    def snapshot(self) -> Snapshot:
        """The world as it is now, frozen."""
        return Snapshot(
            folders=self.folders,
            documents=self.documents.freeze(self.locate),
            settings=self.settings,
            now=self._clock(),
            diagnostics=tuple(each for given in self._diagnostics.values() for each in given),
            recent=self.documents.recent(),
            trusted=self.trusted,
            policy=self.policy,
        )

    async def context(self, request: Request, snapshot: Snapshot | None = None) -> Bundle:
        """The bundle for `request`. Take the snapshot when the request arrives; None takes one when this starts."""
        request, workspace = await self.prepared(request, snapshot)
        bundle = await self.paused.run(request, workspace, pipeline.Services(conversations=self.conversations))
        known = bundle if bundle.turn else self.conversations.remember(request, workspace.snapshot, bundle)
        return self._recorded(request, workspace, known)

    async def resume(self, turn: str, records: Sequence[OpenedRecord]) -> Bundle:
        """Go on with the sealed messages that a bundle with a `turn` asked for."""
        waiting, clear = self.paused.accept(turn, records)
        now = await self._ruled(waiting.paused.held.plan.request)
        return self._recorded(*await self.paused.go_on(waiting, clear, now))

    async def preview(self, request: Request, snapshot: Snapshot | None = None) -> Bundle:
        """The same decisions as `context`, with no content: texts of prompt and blocks are empty."""
        return await self.paused.preview(*await self.prepared(request, snapshot))

    async def select(self, request: Request, snapshot: Snapshot | None = None) -> Selected:
        """The one document that the request's `document` names, with its bundle. Takes the snapshot as `context`."""
        request, workspace = await self.prepared(request, snapshot)
        selected = await selecting.select(request, workspace)
        return replace(selected, bundle=self._recorded(request, workspace, selected.bundle))

    async def fim(self, request: FimRequest, snapshot: Snapshot | None = None) -> FimBundle:
        """The prompt for inline completion at a cursor. Keeps no record: one is asked for at each pause of typing."""
        return await complete(request, partial(self.prepared, snapshot=snapshot))

    def _recorded(self, request: Request, workspace: Workspace, bundle: Bundle) -> Bundle:
        if self._recorder is None or bundle.turn:
            return bundle
        return replace(bundle, record_id=self._recorder.keep(request, workspace.snapshot, bundle))

    async def prepared(self, request: Request, snapshot: Snapshot | None = None) -> tuple[Request, Workspace]:
        """The request with what is wrong with settings and records, and the world it is answered in."""
        frozen = await self._ruled(request, snapshot)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READER_WAIT):
                await asyncio.gather(*(index.wait_opened() for index in self._folders.values()))
        recorded = self._recorder.take_problems() if self._recorder is not None else ()
        indexes = {key: index.reader for key, index in self._folders.items() if index.reader is not None}
        workspace = Workspace(
            frozen,
            indexes,
            self._pool,
            memory=self.memories.store,
            cache_dir=self._cache_dir,
            texts=self._texts,
            gate=DocumentGate.of(frozen, request),
            words_only=frozenset(
                key for key, index in self._folders.items() if not may_embed(index.reader_settings, frozen.settings)
            ),
        )
        return replace(request, problems=(*request.problems, *self.settings_problems, *recorded)), workspace

    async def _ruled(self, request: Request, snapshot: Snapshot | None = None) -> Snapshot:
        """The snapshot, else that of now, with the policy of this request and the settings that it leaves on."""
        frozen = snapshot or self.snapshot()
        policy = (await self.read_policy(request.policy)).policy
        settings = confined(frozen.settings, policy, local_only=request.local_only)
        if (policy, settings) != (frozen.policy, frozen.settings):
            frozen = replace(frozen, policy=policy, settings=settings)
        return frozen

    # --- records of what was answered ---

    async def records(self, limit: int, folder: str = "") -> tuple[Record, ...]:
        """The newest records of one folder, or of all."""
        return await self._recorder.list(self.snapshot(), limit, folder) if self._recorder is not None else ()

    async def record(self, prefix: str, folder: str = "") -> Record:
        """The record whose id begins with `prefix`. Raises `record_not_found` or `record_ambiguous`."""
        return await self._kept().get(self.snapshot(), prefix, folder)

    async def verify_record(self, prefix: str, folder: str = "", tenant: str = "") -> Verification:
        """Whether a record is as it was written, and what became of the files it names. Raises as `record` does.

        Documents of another tenant than `tenant` are gone, as they are for its questions.
        """
        await self.read_policy()
        frozen = self.snapshot()
        gate = DocumentGate.of(frozen, Request("", tenant=tenant))
        workspace = Workspace(frozen, {}, self._pool, texts=self._texts, gate=gate)
        return await self._kept().verify(workspace, prefix, folder)

    def _kept(self) -> Recorder:
        if self._recorder is None:
            raise HaversackError("record_not_found", "This session keeps no records.")
        return self._recorder

    # --- folders and their indexes ---

    @property
    def folders(self) -> tuple[Folder, ...]:
        return self._folders.all

    def add_folder(self, uri: str, name: str = "") -> Folder | None:
        """Take a folder in, without starting its index. None when the address has no path; a known folder stays."""
        path = uris.to_path(uri)
        if path is None:
            return None
        root = os.path.realpath(path)
        for index in self._folders.values():
            if index.folder.root == root:
                return index.folder
        folder = Folder(self._folders.free_key(name or path.name or "workspace"), uri, root)
        # Before anything reads the folder, what keeps its files here must be known: one small file is read right now.
        self.policy = self._policies.merged((*self.folders, folder), self.settings, trusted=self.trusted).policy
        settings = confined(self.settings, self.policy)
        self._folders.put(FolderIndex(folder, self._indexing, settings, self._read, self._status_changed), path)
        self._configure()
        return folder

    def remove_folder(self, uri: str) -> None:
        for index in self._folders.take(uris.to_path(uri)):
            self._later(index.stop())

    def start_indexing(self, *, watch: bool = False) -> None:
        """Bring every folder's index up to date in the background; with `watch`, follow the disk as well."""
        for index in self._folders.values():
            index.start()
            if watch:
                index.watch()

    def find_folder(self, name: str) -> str:
        """The key of the folder that `name` (a URI, a path or a folder's name) means. Raises `InvalidRequest`."""
        return self._folders.find(name)

    def status(self, folder: str = "") -> tuple[tuple[Folder, IndexStatus], ...]:
        """Index status of one folder, or of all."""
        chosen = self._folders.some(folder)
        return tuple((index.folder, index.status) for index in chosen)

    def indexed_file(self, path: str, folder: str = "") -> FileRecord | None:
        """What the index of a folder (the first one's by default) knows of a file. Blocks for one query."""
        index = self._folders.one(folder)
        return index.reader.file(path) if index.reader is not None else None

    def why_skipped(self, path: str, folder: str = "") -> str:
        """Why the index of a folder leaves a file out; "" when it does not say. Blocks for one query."""
        index = self._folders.one(folder)
        return index.reader.why_skipped(path) if index.reader is not None else ""

    async def rebuild(self, folder: str = "") -> None:
        """Build one folder's index, or all of them, from nothing; the work goes on after this returns."""
        chosen = self._folders.some(folder)
        await asyncio.gather(*(index.rebuild() for index in chosen))

    async def wait_ready(self, folder: str = "", progress: Callable[[IndexStatus], None] | None = None) -> IndexStatus:
        """Wait until a folder's index (the first one's by default) is up to date; `progress` hears of every step."""
        index = self._folders.one(folder)
        before = self.on_status

        def tell(changed: Folder, status: IndexStatus) -> None:
            before(changed, status)
            if progress is not None and changed == index.folder:
                progress(status)

        self.on_status = tell
        try:
            return await index.wait_settled()
        finally:
            self.on_status = before

    def files_changed(self, changed: Iterable[str]) -> None:
        """Files at these URIs may have changed on the disk, appeared or gone."""
        by_folder: dict[str, list[str]] = {}
        for uri in changed:
            path = uris.to_path(uri)
            place = self.locate(path) if path is not None else None
            if place is not None:
                by_folder.setdefault(place[0], []).append(place[1])
        for key, paths in by_folder.items():
            self._folders[key].changed(paths)
        if any(WORKSPACE_FILE in paths for paths in by_folder.values()):
            self._later(self.read_policy())

    def locate(self, path: PurePath) -> tuple[str, str] | None:
        """The folder key and the path inside it; the innermost folder wins. Compared part by part, without the disk."""
        return self._folders.locate(path)

    # --- documents, settings, diagnostics ---

    def use_encoding(self, encoding: Encoding) -> None:
        self.documents.encoding = encoding

    def document_saved(self, uri: str, text: str | None = None) -> None:
        self.documents.save(uri, text)
        self.files_changed((uri,))

    def update_settings(self, *layers: Mapping[str, Any]) -> None:
        """Take the user's settings, weakest layer first. What does not fit becomes a problem of every reply.

        An editor does not say which values a workspace brought: without trust, all count as the workspace's.
        """
        scope = Scope.USER if self.trusted else Scope.WORKSPACE
        settings, problems = config.merge([Layer(scope, layer) for layer in layers], trusted=self.trusted)
        self.settings, self.settings_problems = settings, problems
        self._configure()

    def set_diagnostics(self, uri: str, diagnostics: Sequence[Diagnostic]) -> None:
        """Replace what the client's tools say about one document."""
        key = uris.canonical(uri)
        if diagnostics:
            self._diagnostics[key] = tuple(diagnostics)
        else:
            self._diagnostics.pop(key, None)

    # --- policy ---

    def is_policy(self, uri: str) -> bool:
        """Whether a document is the user's policy or that of a workspace folder."""
        return self._policy_place(uri) is not None

    async def check_policy(self, uri: str, text: str) -> Merged:
        """What a policy file would mean with `text` in it; `is_policy` says of which documents this can be asked."""
        folder = self._policy_place(uri) or None
        check = partial(self._policies.check, settings=self.settings, trusted=self.trusted)
        return await self._read(check, text, folder)

    def _policy_place(self, uri: str) -> Folder | Literal[""] | None:
        """The folder whose policy a document is; "" for the user's; None when it is no policy."""
        path = uris.to_path(uri)
        if path is None:
            return None
        if path == self._policies.user_file:
            return ""
        place = self.locate(path)
        return self._folders[place[0]].folder if place is not None and place[1] == WORKSPACE_FILE else None

    async def read_policy(self, request: Mapping[str, object] | None = None) -> Merged:
        """The policy of the files as they are now, with all findings, and that of a request on top. What the files say
        is kept, and what indexes send out follows."""
        merged = partial(self._policies.merged, self.folders, self.settings, trusted=self.trusted)
        standing: Merged = await self._read(merged)
        if standing.policy != self.policy:
            self.policy = standing.policy
            self._configure()
        return standing if request is None else await self._read(partial(merged, request=request))

    def _configure(self) -> None:
        settings = confined(self.settings, self.policy)
        for index in self._folders.values():
            index.configure(settings)

    def _later(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _read(self, function: Callable[..., Any], *args: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    def _status_changed(self, folder: Folder, status: IndexStatus) -> None:
        self.on_status(folder, status)
