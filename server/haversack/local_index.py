"""The real index of a folder: a database in the cache folder, and a worker process that fills it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from haversack.config import walk_rules
from haversack.indexing import OnChange, OnProblem, withheld_patterns
from haversack.outbound import Post, read_key, transport
from haversack.policy.confinement import SERVICES, embeds_elsewhere
from haversack.policy.privacy import Privacy
from haversack.policy.secrets import without_secrets
from haversack.types import Folder, Settings
from haversack_index.client import WorkerClient, WorkerEvent
from haversack_index.embed import load_embedder
from haversack_index.pool import EmbedderSpec
from haversack_index.reader import IndexReader
from haversack_index.types import Embedder
from haversack_index.watch import watch

log = logging.getLogger("haversack.indexing")


class LocalIndexing:
    """Opens indexes below `cache_dir`. Folders with the same embedder share it."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache_dir = cache_dir
        self._embedders: dict[tuple[str, ...], Embedder] = {}

    def open_reader(self, folder: Folder, settings: Settings) -> IndexReader:
        """Blocks while an embedder is loaded. Without one, words are searched and the worker tells why."""
        return IndexReader(Path(folder.root), self._cache_dir, self._embedder(settings), walk_rules(settings))

    def make_worker(self, folder: Folder, settings: Settings, on_event: Callable[[WorkerEvent], None]) -> LocalWorker:
        rules, embedder = walk_rules(settings), embedder_spec(settings)
        return LocalWorker(WorkerClient(Path(folder.root), self._cache_dir, on_event, rules=rules, embedder=embedder))

    async def watch(self, folder: Folder, settings: Settings, on_change: OnChange, on_problem: OnProblem) -> None:
        """Follow the disk until cancelled."""
        await watch(Path(folder.root), walk_rules(settings), on_change, asyncio.Event(), on_problem)

    def _embedder(self, settings: Settings) -> Embedder | None:
        names = (settings.embedder, settings.embedder_endpoint, settings.embedder_model)
        key = (*names, settings.embedder_key_variable, *withheld_patterns(settings))
        if key not in self._embedders:
            try:
                self._embedders[key] = embedder_spec(settings).load()
            except Exception as error:  # noqa: BLE001 - a service or a package of the user's; the worker reports it
                log.warning("embedder %s is not available (%s)", settings.embedder, type(error).__name__)
                return None
        return self._embedders[key]


class LocalWorker:
    """A worker process that takes the product's settings."""

    def __init__(self, client: WorkerClient) -> None:
        self._client = client

    async def start(self) -> None:
        """Start the process; it begins with a pass over the folder."""
        await self._client.start()

    async def update(self, paths: Sequence[str] | None) -> None:
        await self._client.update(paths)

    async def rebuild(self) -> None:
        await self._client.rebuild()

    async def configure(self, settings: Settings) -> None:
        await self._client.configure(walk_rules(settings), embedder_spec(settings))

    async def stop(self) -> None:
        await self._client.stop()


def embedder_spec(settings: Settings) -> EmbedderSpec:
    """How every process makes the embedder of these settings; services are reached through `haversack.outbound`."""
    arguments: dict[str, Any] = {"kind": settings.embedder}
    if settings.embedder_endpoint:
        arguments["endpoint"] = settings.embedder_endpoint
    if settings.embedder_model:
        arguments["model"] = settings.embedder_model
    if settings.embedder in SERVICES:
        arguments["withheld"] = withheld_patterns(settings)
        if settings.embedder_key_variable:
            arguments["key_variable"] = settings.embedder_key_variable
        return EmbedderSpec(f"{__name__}:load_service_embedder", arguments)
    return EmbedderSpec(arguments=arguments)


def load_service_embedder(
    kind: str, endpoint: str = "", model: str = "", withheld: Sequence[str] = (), key_variable: str = ""
) -> Embedder:
    """An embedder behind an address: the only one it may reach. Raises like `haversack_index.embed.load_embedder`,
    and HaversackError `no_key`. The key itself is read here, in each process, and passed on to nobody.

    It gets no text of files that the privacy patterns `withheld` match; such files are found by their words. One that
    runs elsewhere gets no secrets either: neither of files nor of questions.
    """
    key = read_key(key_variable, "haversack.embedding.keyVariable")
    settings = Settings(embedder=kind, embedder_endpoint=endpoint, embedder_model=model)
    post = transport(settings)
    if embeds_elsewhere(settings):
        post = partial(_post_without_secrets, post)
    privacy = Privacy.compile(Settings(restricted_paths=tuple(withheld)))
    withholds = privacy.restricts if privacy.active else None
    return load_embedder(kind, endpoint=endpoint, model=model, post=post, withholds=withholds, key=key)


def _post_without_secrets(post: Post, url: str, json: Any, headers: Mapping[str, str], timeout: float) -> Any:
    texts = [without_secrets(text) for text in json["input"]]
    return post(url, {**json, "input": texts}, headers, timeout)
