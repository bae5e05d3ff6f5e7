"""A session on one folder, indexed, with progress a person can watch. Every command that asks the index starts here."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from haversack.cli.arguments import FAILED, Options
from haversack.cli.render import Output, safe
from haversack.session import Session, open_session
from haversack.types import HaversackError
from haversack_index.types import IndexState, IndexStatus

STEPS = {IndexState.SCANNING: "Looking for files", IndexState.INDEXING: "Indexing"}


def run_async(work: Callable[[Options, Console], Awaitable[int]], options: Options) -> int:
    """Run a command; a refusal becomes a sentence on stderr (or JSON, when JSON was asked for) and exit code 1."""
    console = Output()
    try:
        return asyncio.run(_await(work(options, console)))
    except HaversackError as error:
        if options.json:
            json.dump(
                {
                    "error": {
                        "code": error.code,
                        "message": error.message,
                        "remedy": error.remedy,
                        "details": error.details,
                    }
                },
                sys.stdout,
                ensure_ascii=False,
                default=str,
            )
            print()
        else:
            errors = Console(stderr=True)
            errors.print(
                f"haversack: {safe(error.message)}", style="bold red", markup=False, highlight=False, soft_wrap=True
            )
            if error.remedy:
                errors.print(safe(error.remedy), markup=False, highlight=False, soft_wrap=True)
            errors.print(f"({error.code})", style="dim", markup=False, highlight=False)
        return FAILED


async def _await(work: Awaitable[int]) -> int:
    return await work


@asynccontextmanager
async def opened(options: Options) -> AsyncGenerator[Session]:
    """A session with the workspace folder added; its index is not yet started."""
    async with open_session(options.cache_dir) as session:
        session.add_folder(options.workspace.resolve().as_uri())
        yield session


async def brought_up_to_date(session: Session) -> IndexStatus:
    """Index what changed, with a progress bar when stderr is a terminal and nothing at all when it is a pipe."""
    errors = Console(stderr=True)
    session.start_indexing()
    if not errors.is_terminal:
        return await session.wait_ready()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(STEPS[IndexState.SCANNING], total=None)

        def show(status: IndexStatus) -> None:
            name = STEPS.get(status.state, "Checking")
            progress.update(task, description=name, completed=status.done, total=status.total or None)

        return await session.wait_ready(progress=show)
