"""One function per message: convert, call, convert. What happens before a function returns happens in message order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, cast

from lsprotocol import types as lsp

from haversack import __version__
from haversack.lsp import from_lsp, protocol, records, sealed_messages, to_lsp
from haversack.lsp.conversation_handlers import ConversationHandlers
from haversack.lsp.dispatch import Dispatcher, Handler, State
from haversack.lsp.editor import SECTION, Editor, EditorModel
from haversack.lsp.fim_handlers import FimHandlers
from haversack.lsp.memory_handlers import MemoryHandlers
from haversack.lsp.policy_files import PolicyFileDiagnostics
from haversack.session import Session
from haversack.types import Bundle, Request, Snapshot

OnParent = Callable[[int], None]


class Handlers:
    """The messages of one connection, over one session."""

    def __init__(self, connection: Dispatcher, session: Session, watch_parent: OnParent) -> None:
        self._connection = connection
        self._session = session
        self._watch_parent = watch_parent
        self._editor = Editor(connection, {})
        self._policy_files = PolicyFileDiagnostics(connection, session)
        self._given_settings: dict[str, Any] = {}  # from initializationOptions; the editor's own values win
        self._watch_disk = False  # the editor cannot watch files for us
        self._background: set[asyncio.Task[None]] = set()
        connection.install(self._requests(), self._notifications())

    def _requests(self) -> Mapping[str, Handler]:
        return {
            lsp.INITIALIZE: self.initialize,
            lsp.SHUTDOWN: self.shutdown,
            protocol.CONTEXT: self.context,
            protocol.CONTINUE: self.resume,
            protocol.PREVIEW: self.preview,
            protocol.SELECT: self.select,
            protocol.INDEX_STATUS: self.index_status,
            protocol.INDEX_REBUILD: self.index_rebuild,
            protocol.RECORDS_LIST: self.records_list,
            protocol.RECORDS_GET: self.records_get,
            protocol.RECORDS_VERIFY: self.records_verify,
            **MemoryHandlers(self._session).requests(),
            **ConversationHandlers(self._session).requests(),
            **FimHandlers(self._session).requests(),
        }

    def _notifications(self) -> Mapping[str, Handler]:
        return {
            lsp.INITIALIZED: self.initialized,
            lsp.TEXT_DOCUMENT_DID_OPEN: self.did_open,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self.did_change,
            lsp.TEXT_DOCUMENT_DID_SAVE: self.did_save,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self.did_close,
            lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES: self.did_change_watched_files,
            lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self.did_change_workspace_folders,
            lsp.WORKSPACE_DID_CHANGE_CONFIGURATION: self.did_change_configuration,
            protocol.ABANDON: self.abandon,
            protocol.DIAGNOSTICS: self.diagnostics,
        }

    # --- Haversack's own ---

    def context(self, params: protocol.ContextParams, unknown: tuple[str, ...]) -> Coroutine[Any, Any, object]:
        return self._answer(params, unknown, self._session.context)

    def preview(self, params: protocol.ContextParams, unknown: tuple[str, ...]) -> Coroutine[Any, Any, object]:
        return self._answer(params, unknown, self._session.preview)

    def select(self, params: protocol.SelectParams, unknown: tuple[str, ...]) -> Coroutine[Any, Any, object]:
        request = from_lsp.selection(params, unknown, self._session.find_folder)
        snapshot = self._session.snapshot()

        async def reply() -> protocol.SelectResult:
            return to_lsp.selected(await self._session.select(request, snapshot), snapshot.folders)

        return reply()

    def _answer(
        self,
        params: protocol.ContextParams,
        unknown: tuple[str, ...],
        ask: Callable[[Request, Snapshot], Awaitable[Bundle]],
    ) -> Coroutine[Any, Any, object]:
        # Positions mean the text as it is now, so they are converted and the snapshot is taken before the next message.
        request = from_lsp.request(params, unknown, self._session.documents, self._session.find_folder)
        snapshot = self._session.snapshot()

        async def reply() -> protocol.ContextResult:
            return to_lsp.context(await ask(request, snapshot), snapshot.folders, params.provider_history)

        return reply()

    async def resume(self, params: protocol.ContinueParams, unknown: tuple[str, ...]) -> protocol.ContextResult:
        folders = self._session.paused.folders_of(params.turn)
        bundle = await self._session.resume(params.turn, from_lsp.records(params))
        return to_lsp.context(replace(bundle, problems=(*from_lsp.unknown_fields(unknown), *bundle.problems)), folders)

    def abandon(self, params: sealed_messages.AbandonParams, unknown: tuple[str, ...]) -> None:
        del unknown
        self._session.paused.abandon(params.turn)

    def index_status(self, params: protocol.IndexParams, unknown: tuple[str, ...]) -> protocol.IndexStatusResult:
        del unknown
        return to_lsp.index_status(self._session.status(self._folder(params)))

    async def index_rebuild(self, params: protocol.IndexParams, unknown: tuple[str, ...]) -> protocol.IndexStatusResult:
        del unknown
        folder = self._folder(params)
        await self._session.rebuild(folder)
        return to_lsp.index_status(self._session.status(folder))

    async def records_list(self, params: records.RecordsParams, unknown: tuple[str, ...]) -> records.RecordsResult:
        del unknown
        return to_lsp.records(await self._session.records(params.limit, self._folder(params)))

    async def records_get(self, params: records.RecordParams, unknown: tuple[str, ...]) -> records.RecordResult:
        del unknown
        return to_lsp.record(await self._session.record(params.id, self._folder(params)))

    async def records_verify(
        self, params: records.RecordParams, unknown: tuple[str, ...]
    ) -> records.RecordVerifyResult:
        del unknown
        return to_lsp.verification(await self._session.verify_record(params.id, self._folder(params), params.tenant))

    def diagnostics(self, params: protocol.DiagnosticsParams, unknown: tuple[str, ...]) -> None:
        del unknown
        self._session.set_diagnostics(params.uri, from_lsp.diagnostics(params, self._session.documents))

    def _folder(self, params: protocol.IndexParams | records.RecordsParams | records.RecordParams) -> str:
        return self._session.find_folder(params.workspace_folder) if params.workspace_folder else ""

    # --- life cycle ---

    def initialize(self, params: protocol.InitializeParams, unknown: tuple[str, ...]) -> lsp.InitializeResult:
        del unknown
        encoding = from_lsp.encoding(params.capabilities)
        self._session.use_encoding(encoding)
        self._editor = Editor(self._connection, params.capabilities)
        self._session.on_status = self._editor.show
        if from_lsp.offer(params.capabilities, "experimental", "haversack", "summarize"):
            self._session.conversations.editor = EditorModel(self._connection)
        for uri, name in from_lsp.folders(params):
            self._session.add_folder(uri, name)
        trusted, self._given_settings = from_lsp.options(params.initialization_options)
        self._session.trusted = trusted
        self._session.update_settings(self._given_settings)
        if params.process_id is not None:
            self._watch_parent(params.process_id)
        self._connection.state = State.RUNNING
        return lsp.InitializeResult(
            capabilities=lsp.ServerCapabilities(
                position_encoding=lsp.PositionEncodingKind(encoding.value),
                text_document_sync=lsp.TextDocumentSyncOptions(
                    open_close=True,
                    change=lsp.TextDocumentSyncKind.Incremental,
                    save=lsp.SaveOptions(include_text=False),
                ),
                workspace=lsp.WorkspaceOptions(
                    workspace_folders=lsp.WorkspaceFoldersServerCapabilities(supported=True, change_notifications=True)
                ),
                experimental={"haversack": {"methods": [*protocol.REQUESTS, *protocol.NOTIFICATIONS]}},
            ),
            server_info=lsp.ServerInfo(name="haversack", version=__version__),
        )

    def initialized(self, params: object) -> None:
        del params
        self._later(self._start())

    def shutdown(self, params: object) -> None:
        del params
        self._connection.state = State.SHUT_DOWN
        self._connection.cancel_all()
        self._session.paused.turns.clear()
        self.close()

    def close(self) -> None:
        """End what runs beside the messages."""
        self._editor.close()
        self._policy_files.close()
        for task in self._background:
            task.cancel()

    async def _start(self) -> None:
        await self._pull_settings()
        await self._editor.watch_settings()
        self._watch_disk = not await self._editor.watch_files()
        self._session.start_indexing(watch=self._watch_disk)

    # --- documents and files ---

    def did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        self._session.documents.open(document.uri, document.language_id, document.text)
        self._policy_files.changed(document.uri)

    def did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        edits = [from_lsp.edit(change) for change in params.content_changes]
        self._session.documents.change(params.text_document.uri, edits)
        self._policy_files.changed(params.text_document.uri)

    def did_save(self, params: lsp.DidSaveTextDocumentParams) -> None:
        self._session.document_saved(params.text_document.uri, params.text)
        self._policy_files.changed(params.text_document.uri)

    def did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self._session.documents.close(params.text_document.uri)
        self._policy_files.closed(params.text_document.uri)

    def did_change_watched_files(self, params: lsp.DidChangeWatchedFilesParams) -> None:
        self._session.files_changed(change.uri for change in params.changes)

    def did_change_workspace_folders(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            self._session.remove_folder(folder.uri)
        for folder in params.event.added:
            self._session.add_folder(folder.uri, folder.name)
        self._session.start_indexing(watch=self._watch_disk)

    # --- settings ---

    def did_change_configuration(self, params: lsp.DidChangeConfigurationParams) -> None:
        pushed = cast("object", params.settings)
        if isinstance(pushed, dict):
            self._use_settings(cast("dict[str, Any]", pushed).get(SECTION, pushed))
        self._later(self._pull_settings())

    async def _pull_settings(self) -> None:
        self._use_settings(await self._editor.settings())

    def _use_settings(self, values: object) -> None:
        if isinstance(values, dict):
            self._session.update_settings(self._given_settings, cast("dict[str, Any]", values))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
