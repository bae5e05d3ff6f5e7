"""The server under the capabilities of real editors; pytest-lsp objects when it uses what was not offered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from e2e.raw_client import FAKE_SERVER
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

pytestmark = pytest.mark.e2e

# What each editor's recorded capabilities make of the position encoding, seen with pytest-lsp 1.0.1.
ENCODINGS = {"neovim": "utf-8", "visual_studio_code": "utf-16", "emacs": "utf-32"}
COLUMNS = {"utf-8": 10, "utf-16": 8, "utf-32": 7}


@pytest_lsp.fixture(params=list(ENCODINGS), config=ClientServerConfig(server_command=list(FAKE_SERVER)))
async def client(request: Any, lsp_client: LanguageClient, tmp_path: Path) -> Any:
    capabilities = client_capabilities(request.param)
    registered: list[str] = []

    @lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params: lsp.RegistrationParams) -> None:
        registered.extend(each.method for each in params.registrations)

    lsp_client.set_configuration({"haversack": {"contextWindow": "4k"}})
    result = await lsp_client.initialize_session(
        lsp.InitializeParams(
            capabilities=capabilities,
            workspace_folders=[lsp.WorkspaceFolder(uri=tmp_path.as_uri(), name="ws")],
        )
    )
    assert result.capabilities.position_encoding == ENCODINGS[request.param]
    editor: Any = lsp_client
    editor.registered = registered
    editor.column = COLUMNS[ENCODINGS[request.param]]  # of the place behind the fox in the test's document
    yield lsp_client
    await lsp_client.shutdown_session()


async def ask(client: LanguageClient, method: str, params: object, ident: str | None = None) -> Any:
    return await asyncio.wait_for(client.protocol.send_request_async(method, params, msg_id=ident), 10)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - pytest-lsp sets no event for progress
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_a_session_in_each_editor(client: Any, tmp_path: Path) -> None:
    """Positions, progress, cancellation, unknown methods, folders and settings in one session per editor."""
    uri = (tmp_path / "e.py").as_uri()
    document = lsp.TextDocumentItem(uri=uri, language_id="python", version=1, text='s = "a🦊b"\n')
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
    active = {"uri": uri, "position": {"line": 0, "character": client.column}}
    answer = await ask(client, "haversack/context", {"text": "hello", "activeDocument": active})
    assert "character=7" in answer.manifest.items[0].why
    assert answer.blocks[0].text == document.text
    assert answer.blocks[0].range.start.line == 2
    assert answer.blocks[0].range.end.character == 0

    watched = client.capabilities.workspace and client.capabilities.workspace.did_change_watched_files
    if watched and watched.dynamic_registration:
        await until(lambda: lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES in client.registered)

    slow = asyncio.ensure_future(ask(client, "haversack/context", {"text": "sleep 30"}, "slow"))
    await asyncio.sleep(0.05)
    client.cancel_request(lsp.CancelParams(id="slow"))
    with pytest.raises(Exception) as cancelled:
        await slow
    assert getattr(cancelled.value, "code", None) == lsp.LSPErrorCodes.RequestCancelled
    with pytest.raises(Exception) as unknown:
        await ask(client, "haversack/nothing", {})
    assert getattr(unknown.value, "code", None) == -32601

    event = lsp.WorkspaceFoldersChangeEvent(
        added=[lsp.WorkspaceFolder(uri=(tmp_path / "more").as_uri(), name="ws")],
        removed=[lsp.WorkspaceFolder(uri=tmp_path.as_uri(), name="ws")],
    )
    client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
    client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
    status = await ask(client, "haversack/index/status", {})
    assert [folder.name for folder in status.folders] == ["ws"]
    assert status.folders[0].uri.endswith("/more")

    offered = client.capabilities.window
    if offered is not None and offered.work_done_progress:
        await until(lambda: any(values_end(values) for values in client.progress_reports.values()))
        for values in client.progress_reports.values():
            kinds = [type(value).__name__ for value in values]
            assert kinds[0] == "WorkDoneProgressBegin"
            assert set(kinds[1:-1]) <= {"WorkDoneProgressReport"}
            percentages = [value.percentage for value in values[:-1]]
            assert percentages == sorted(percentages)
    else:
        assert not client.progress_reports


def values_end(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[-1], lsp.WorkDoneProgressEnd)
