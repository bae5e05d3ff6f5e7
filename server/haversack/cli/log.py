"""`haversack log` lists the records of answers or shows one; `haversack verify` checks one, and the files it names."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haversack.cli import render
from haversack.cli.arguments import FAILED, OK, Options
from haversack.cli.opening import opened, run_async
from haversack.record_form import Record, Summary, faults, summary
from haversack.recorder import State, Verification

# Characters of an id or a hash in a table: enough that two of a thousand are told apart.
SHORT = 12

OUTCOME_STYLE: Mapping[str, str] = {**render.OUTCOME_STYLE}
STATE_STYLE: Mapping[str, str] = {State.UNCHANGED: "green", State.CHANGED: "yellow", State.GONE: "red"}


def run(options: Options) -> int:
    return run_async(_one if options.record else _list, options)


def verify(options: Options) -> int:
    return run_async(_verify, options)


async def _list(options: Options, console: Console) -> int:
    async with opened(options) as session:
        records = await session.records(options.limit)
        if options.json:
            from haversack.lsp import to_lsp  # noqa: PLC0415 - loads the protocol types, which only JSON needs

            _print_json(to_lsp.records(records))
        elif records:
            _print_list(console, [summary(record) for record in records])
        else:
            console.print("There are no records of this folder.", markup=False, highlight=False)
    return OK


async def _one(options: Options, console: Console) -> int:
    async with opened(options) as session:
        record = await session.record(options.record)
        if options.json:
            from haversack.lsp import to_lsp  # noqa: PLC0415 - as above

            _print_json(to_lsp.record(record))
        elif found := faults(record):
            _print_faults(console, record, found)
        else:
            _print_record(console, record)
    return OK if not faults(record) else FAILED


async def _verify(options: Options, console: Console) -> int:
    async with opened(options) as session:
        done = await session.verify_record(options.record, tenant=options.tenant)
        if options.json:
            from haversack.lsp import to_lsp  # noqa: PLC0415 - as above

            _print_json(to_lsp.verification(done))
        elif done.faults:
            _print_faults(console, done.record, done.faults)
        else:
            _print_verification(console, done)
    return FAILED if done.faults else OK


def _print_json(value: object) -> None:
    from haversack.lsp import wire  # noqa: PLC0415 - as above

    json.dump(wire.write(value), sys.stdout, ensure_ascii=False)
    print()


def _print_list(console: Console, summaries: Sequence[Summary]) -> None:
    table = Table(box=None, padding=render.GAP)
    table.add_column("id")
    table.add_column("time")
    table.add_column("model", overflow="fold")
    for name in ("tokens", "included", "shortened", "redacted", "excluded"):
        table.add_column(name, justify="right")
    table.add_column("hash")
    for each in summaries:
        known = (each.included, each.shortened, each.redacted, each.excluded)
        table.add_row(
            each.id[:SHORT],
            _when(each.time),
            Text(render.one_line(each.model) if each.intact else "changed since it was written"),
            f"{each.tokens:,}" if each.intact else "-",
            *(f"{count:,}" if each.intact else "-" for count in known),
            each.hash[:SHORT],
        )
    console.print(table)


def _print_record(console: Console, record: Record) -> None:
    content, line = record.content, summary(record)
    table = render.facts()
    table.add_row("time", _when(record.time))
    table.add_row("model", Text(render.one_line(line.model)))
    table.add_row("recipe", Text(render.one_line(line.recipe)))
    tokens = content["usage"]["tokens"]
    table.add_row("tokens", f"{line.tokens:,} of {tokens['window']:,} ({tokens['counted']})")
    table.add_row("hash", record.hash)
    for problem in content["problems"]:
        table.add_row("problem", Text(render.one_line(f"{problem['stage']}: {problem['code']}")))
    render.print_titled(console, f"Record {record.id}", table)
    console.print()
    rows = Table(box=None, padding=render.GAP)
    rows.add_column("outcome")
    rows.add_column("item", overflow="fold")
    rows.add_column("detail")
    rows.add_column("tokens", justify="right")
    rows.add_column("why", overflow="fold")
    for entry in content["entries"]:
        spent = entry["tokens_after"]
        rows.add_row(
            Text(entry["outcome"], style=OUTCOME_STYLE.get(entry["outcome"], "")),
            Text(_place(entry) + (" (required)" if entry["required"] else "")),
            entry["detail"] or "-",
            f"{spent:,}" if spent else f"({entry['tokens_before']:,})",
            Text(render.one_line("; ".join(entry["reasons"])) or entry["source"]),
        )
    render.print_titled(console, "What the model read, and what it did not", rows)


def _print_verification(console: Console, done: Verification) -> None:
    _say(console, f"Record {done.record.id} is as it was written: {done.record.hash}", "bold green")
    table = Table(box=None, padding=render.GAP)
    table.add_column("now")
    table.add_column("item", overflow="fold")
    for each in done.entries:
        table.add_row(Text(each.state, style=STATE_STYLE.get(each.state, "dim")), Text(_place(each.entry)))
    if done.entries:
        console.print(table)


def _print_faults(console: Console, record: Record, found: Sequence[str]) -> None:
    _say(console, f"Record {record.id} is not as it was written: {'; '.join(found)}.", "bold red")


def _say(console: Console, text: str, style: str) -> None:
    console.print(render.one_line(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _place(entry: Mapping[str, Any]) -> str:
    """`path:10-20`; what has no path, or may not show it, is told by its kind and the start of its id."""
    if entry["withheld"]:
        return f"(restricted {entry['kind']} {entry['id'][:SHORT]})"
    if entry["path"] is None:
        return f"({entry['kind']} {entry['id'][:SHORT]})"
    lines = entry["lines"]
    return render.one_line(entry["path"] + (f":{render.numbers((lines[0], lines[1]))}" if lines else ""))


def _when(time: float) -> str:
    try:
        return datetime.fromtimestamp(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # a time that nobody wrote
        return "-"
