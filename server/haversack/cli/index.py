"""`haversack index`: bring the index of a folder up to date, build it anew, or show its state."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import platformdirs
from rich.console import Console

from haversack.cli import render
from haversack.cli.arguments import FAILED, OK, Options
from haversack.cli.opening import brought_up_to_date, opened, run_async
from haversack.local_index import LocalIndexing
from haversack.session import Session
from haversack.types import HaversackError
from haversack_index.database import database_path, remove
from haversack_index.types import IndexState, IndexStatus


def run(options: Options) -> int:
    return run_async(_index, options)


async def _index(options: Options, console: Console) -> int:
    async with opened(options) as session:
        status = await _status(options, session)
        if options.json:
            from haversack.lsp import to_lsp, wire  # noqa: PLC0415 - loads the protocol types, which only JSON needs

            json.dump(wire.write(to_lsp.index_status([(session.folders[0], status)])), sys.stdout, ensure_ascii=False)
            print()
        else:
            render.print_status(console, [status])
    return OK if options.status or status.state is IndexState.READY else FAILED


async def _status(options: Options, session: Session) -> IndexStatus:
    if options.status:
        return stored_status(session, options)
    if options.rebuild:
        _forget(session, options)
    return await brought_up_to_date(session)


def _forget(session: Session, options: Options) -> None:
    """Take the index away before the work starts: asked later, the indexer would first bring the old one up to date."""
    path = database_path(Path(session.folders[0].root), _cache_dir(options))
    try:
        remove(path)
    except OSError as error:
        message = f"The index {path} cannot be removed: {error.strerror or error}."
        raise HaversackError("index_not_removed", message, "Check who owns the cache folder.") from error


def _cache_dir(options: Options) -> Path:
    return options.cache_dir or platformdirs.user_cache_path("haversack")


def stored_status(session: Session, options: Options) -> IndexStatus:
    """The index as it lies on the disk, without touching it."""
    reader = LocalIndexing(_cache_dir(options)).open_reader(session.folders[0], session.settings)
    try:
        return reader.status()
    finally:
        reader.close()
