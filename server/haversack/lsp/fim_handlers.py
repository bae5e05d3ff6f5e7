"""The request for a completion's prompt: convert, call, convert back. A newer one for a document ends the older."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from haversack import types, uris
from haversack.fim.nouns import FimBundle, FimRequest
from haversack.lsp import from_lsp, protocol, to_lsp
from haversack.lsp.dispatch import Handler
from haversack.session import Session


class FimHandlers:
    """Those of one connection, over one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._newest: dict[str, asyncio.Task[FimBundle]] = {}  # by canonical URI

    def requests(self) -> Mapping[str, Handler]:
        return {protocol.FIM: self.fim}

    def fim(self, params: protocol.FimParams, unknown: tuple[str, ...]) -> Coroutine[Any, Any, protocol.FimResult]:
        documents = self._session.documents
        request = request_of(params, unknown, documents.places(params.uri))
        # The position means the text as it is now.
        snapshot = self._session.snapshot()
        key = uris.canonical(params.uri)
        older = self._newest.get(key)
        if older is not None:
            older.cancel()
        # Begun here and not when the answer is: two requests that arrive together must know of each other.
        task = asyncio.get_running_loop().create_task(self._session.fim(request, snapshot))
        self._newest[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

        async def reply() -> protocol.FimResult:
            return _result(await task, snapshot.folders)

        return reply()

    def _forget(self, key: str, done: asyncio.Task[FimBundle]) -> None:
        if self._newest.get(key) is done:
            del self._newest[key]


def request_of(
    params: protocol.FimParams, unknown: tuple[str, ...], place: Callable[[types.Position], types.Position]
) -> FimRequest:
    """The request in our nouns; columns in code points."""
    return FimRequest(
        params.uri,
        place(types.Position(params.position.line, params.position.character)),
        model=params.model,
        prefix_tokens=params.prefix_tokens,
        suffix_tokens=params.suffix_tokens,
        context_tokens=params.context_tokens,
        reply_tokens=params.reply_tokens,
        local_only=params.local_only,
        providers=params.providers,
        policy=params.policy,
        tenant=params.tenant,
        exclude=params.exclude,
        problems=from_lsp.unknown_fields(unknown),
    )


def _result(bundle: FimBundle, folders: Sequence[types.Folder]) -> protocol.FimResult:
    roots = {folder.key: folder.root for folder in folders}
    prompt = bundle.prompt
    return protocol.FimResult(
        prompt=protocol.FimPrompt(prompt.text, prompt.stops, prompt.family, prompt.form.value),
        prefix=bundle.prefix,
        suffix=bundle.suffix,
        imports=bundle.imports,
        snippets=tuple(to_lsp.block(each, roots.get(each.folder)) for each in bundle.snippets),
        language=bundle.language,
        route=to_lsp.route(bundle.route),
        manifest=to_lsp.manifest(bundle.manifest),
        problems=to_lsp.problems(bundle.problems),
    )
