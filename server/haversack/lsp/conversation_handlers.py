"""The request that shortens a conversation: convert, call, convert back."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from haversack.compacting import shorten
from haversack.lsp import conversation as wire
from haversack.lsp import from_lsp, provider_history, to_lsp
from haversack.lsp.dispatch import Handler
from haversack.session import Session
from haversack.types import InvalidRequest, Request


class ConversationHandlers:
    """Those of one connection, over one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def requests(self) -> Mapping[str, Handler]:
        return {wire.COMPACT: self.compact}

    def compact(self, params: wire.CompactParams, unknown: tuple[str, ...]) -> Coroutine[Any, Any, wire.CompactResult]:
        messages = from_lsp.history(params.history, params.provider_history)
        for place, message in enumerate(messages):
            if message.sealed is not None:
                text = f"params.history[{place}]: a sealed message can't be shortened."
                raise InvalidRequest(text, "Send it opened.")
        snapshot = self._session.snapshot()

        async def reply() -> wire.CompactResult:
            asked = Request("", policy=params.policy, local_only=params.local_only)
            asked, workspace = await self._session.prepared(asked, snapshot)
            done = await shorten(
                messages,
                workspace,
                self._session.conversations,
                params.model,
                params.budget_tokens,
                conversation=params.conversation,
                local_only=params.local_only,
            )
            return wire.CompactResult(
                messages=tuple(to_lsp.message(each) for each in done.history.messages),
                provider_messages=provider_history.written(done.history.messages, params.provider_history),
                history=to_lsp.history(replace(done.history, note=done.note), done.window),
                target=done.target,
                problems=to_lsp.problems((*from_lsp.unknown_fields(unknown), *asked.problems, *done.problems)),
            )

        return reply()
