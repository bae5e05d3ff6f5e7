"""`haversack memory`: notes that questions are answered with, and the files in which a team shares them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haversack.cli import render
from haversack.cli.arguments import FAILED, OK, Options
from haversack.cli.opening import opened, run_async
from haversack.memory import Memory, Scope
from haversack.memory.store import Merge
from haversack.remembering import Exported, Imported, Memories
from haversack.types import Folder


def run(options: Options) -> int:
    return run_async(_act, options)


async def _act(options: Options, console: Console) -> int:
    async with opened(options) as session:
        memories, show = session.memories, partial(_show, options, console, session.folders)
        match options.action:
            case "list":
                show([(each, None) for each in await memories.list()])
            case "search":
                show(await memories.search(options.question, limit=options.limit))
            case "export":
                _show_exported(options, console, await memories.export())
            case "import":
                return _show_imported(options, console, await memories.take_in())
            case _:
                show([(await _changed(options, memories), None)])
    return OK


async def _changed(options: Options, memories: Memories) -> Memory:
    if options.action == "delete":
        return await memories.delete(options.memory)
    given = {
        "category": options.category,
        "title": options.title,
        "content": sys.stdin.read() if options.content == "-" else options.content,
        "keywords": options.keyword,
        "private": options.private,
        "origins": options.origin,
    }
    if options.action == "update":
        return await memories.update(options.memory, **given)
    scope = Scope.USER if options.user else Scope.PROJECT
    return await memories.add(scope, **{name: value for name, value in given.items() if value is not None})


def _show(
    options: Options, console: Console, folders: Sequence[Folder], memories: Sequence[tuple[Memory, float | None]]
) -> None:
    if options.json:
        from haversack.lsp import memory_handlers, wire  # noqa: PLC0415 - loads the protocol types, for JSON alone

        results = tuple(memory_handlers.result(each, folders, score) for each, score in memories)
        _print_json({"memories": [wire.write(each) for each in results]})
        return
    if not memories:
        console.print("There are no such memories.", markup=False, highlight=False)
        return
    table = Table(box=None, padding=render.GAP)
    table.add_column("id", no_wrap=True)
    for name in ("category", "scope"):
        table.add_column(name)
    table.add_column("title", overflow="fold")
    table.add_column("content", overflow="fold")
    for memory, _ in memories:
        scope = memory.scope.value + (", private" if memory.private else "")
        texts = (render.one_line(text) for text in (memory.title, memory.content))
        table.add_row(memory.id, memory.category.value, scope, *(Text(text) for text in texts))
    console.print(table)


def _show_exported(options: Options, console: Console, done: Exported) -> None:
    if options.json:
        _print_json({"paths": done.paths, "leftOut": [{"name": id, "reason": why} for id, why in done.left_out]})
        return
    for path in done.paths:
        _say(console, f"written   {path}")
    for id, why in done.left_out:
        _say(console, f"left out  {id}: {why}")
    if not done.paths and not done.left_out:
        _say(console, "This folder has no memories.")


def _show_imported(options: Options, console: Console, done: Imported) -> int:
    ids = {state.value: [memory.id for memory, became in done.done if became is state] for state in Merge}
    if options.json:
        _print_json({**ids, "badFiles": [{"name": each.path, "reason": each.reason} for each in done.bad]})
    else:
        _say(console, ", ".join(f"{len(found)} {state}" for state, found in ids.items()))
        for each in done.bad:
            _say(console, f"{each.path}: {each.reason}")
    return FAILED if done.bad else OK


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False)
    print()


def _say(console: Console, text: str) -> None:
    console.print(render.one_line(text), markup=False, highlight=False, soft_wrap=True)
