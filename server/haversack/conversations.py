"""What a session remembers of its conversations: summaries that were written, and the prompt of the last turn.

Texts stay in memory only, and the oldest leave first.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from haversack.compact import NONE_HELD, Held, Written
from haversack.conversation.exchanges import key_of
from haversack.conversation.prefix import Sent, sent, shared
from haversack.outbound import transport
from haversack.summarize import Port, port_of, write
from haversack.types import (
    Batch,
    Bundle,
    CompactTier,
    Prefix,
    Problem,
    RemoteMode,
    Request,
    Settings,
    Snapshot,
    Summary,
)

K = TypeVar("K")
V = TypeVar("V")

# Conversations that are remembered: more than anybody has open at once.
MOST_CONVERSATIONS = 64
# Summaries that are remembered, a few kilobytes each.
MOST_WRITTEN = 2_000


@dataclass(frozen=True, slots=True)
class _Turn:
    tier: CompactTier
    summaries: tuple[Summary, ...]
    prompt: Sent


class Conversations:
    """One session's. `editor` is the port to the editor's own model, where the editor offers one."""

    def __init__(self, port: Callable[[Settings, Port | None], Port | None] | None = None) -> None:
        self.editor: Port | None = None
        self._port = port or _port
        self._written: OrderedDict[str, Written] = OrderedDict()
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._ahead: set[asyncio.Task[None]] = set()

    def held(self, request: Request, snapshot: Snapshot) -> Held:
        """What compaction may use. Where nothing may leave this machine, no model elsewhere is offered."""
        port = self._port(snapshot.settings, self.editor)
        policy = snapshot.policy
        shut = request.local_only or policy.local_only or policy.closed or policy.remote_mode is not RemoteMode.ALLOW
        turn = self._turns.get(_name(request))
        return replace(
            NONE_HELD,
            model=port is not None and not (port.remote and shut),
            remote=port is not None and port.remote,
            written=dict(self._written),
            earlier=turn.summaries if turn else (),
            earlier_tier=turn.tier if turn else CompactTier.NONE,
        )

    async def write(self, batches: Sequence[Batch], held: Held, settings: Settings) -> tuple[Held, tuple[Problem, ...]]:
        """Ask the model for these; what it gave and what it failed at is in the result."""
        port = self._port(settings, self.editor)
        if port is None:
            return replace(held, failed=held.failed | {batch.key for batch in batches}), ()
        new, problems = await write(batches, port, settings)
        for key, written in new.items():
            _keep(self._written, key, written, MOST_WRITTEN)
        failed = held.failed | {batch.key for batch in batches if batch.key not in new}
        return replace(held, written={**held.written, **new}, failed=failed), problems

    def remember(self, request: Request, snapshot: Snapshot, bundle: Bundle) -> Bundle:
        """Keep what the next turn needs; the bundle with how much of its prompt the provider's cache may still hold."""
        name = _name(request)
        before = self._turns.get(name)
        prompt = sent(bundle.prompt.messages)
        prefix = Prefix(before is not None, shared(before.prompt, prompt) if before else 0, prompt.length)
        history = bundle.history
        _keep(self._turns, name, _Turn(history.tier, history.summaries, prompt), MOST_CONVERSATIONS)
        if history.ahead and snapshot.settings.summarize_ahead:
            self._write_ahead(history.ahead, self.held(request, snapshot), snapshot.settings)
        return replace(bundle, manifest=replace(bundle.manifest, prefix=prefix))

    def close(self) -> None:
        """Stop what is being written ahead."""
        for task in self._ahead:
            task.cancel()

    def _write_ahead(self, batches: Sequence[Batch], held: Held, settings: Settings) -> None:
        """One round at a time: a turn that comes meanwhile finds what is there."""
        if self._ahead:
            return

        async def fetch() -> None:
            await self.write(batches, held, settings)

        task = asyncio.get_running_loop().create_task(fetch(), name="summarize ahead")
        self._ahead.add(task)
        task.add_done_callback(self._ahead.discard)


def _port(settings: Settings, editor: Port | None) -> Port | None:
    return port_of(settings, editor, transport(settings))


def _name(request: Request) -> str:
    """The client's name for the conversation, else how it begins."""
    return request.conversation or key_of(request.history[:1], "begins")


def _keep(store: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    store[key] = value
    store.move_to_end(key)
    if len(store) > most:
        store.popitem(last=False)
