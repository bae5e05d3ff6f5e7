"""`haversack context` packs a question's context; `haversack explain` says why one place is in it, or not."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from rich.console import Console

from haversack.cli import render
from haversack.cli.arguments import OK, Options
from haversack.cli.opening import brought_up_to_date, opened, run_async
from haversack.config import walk_rules
from haversack.mention_syntax import mention_of, without_lines
from haversack.session import Session
from haversack.types import Bundle, HaversackError, Manifest, ManifestItem, Mention, Outcome, Request
from haversack_index.types import SkipReason
from haversack_index.walk import Skipped, check


def run(options: Options) -> int:
    return run_async(_context, options)


def explain(options: Options) -> int:
    return run_async(_explain, options)


async def _context(options: Options, console: Console) -> int:
    async with opened(options) as session:
        await brought_up_to_date(session)
        bundle = await session.context(_request(options))
        if options.json:
            _print_json(bundle, session)
        elif options.prompt:
            for message in bundle.prompt.messages:
                sys.stdout.write(f"[{message.role.value}]\n{message.content}\n\n")
        else:
            render.print_bundle(console, bundle, all_rows=options.all)
    return OK


async def _explain(options: Options, console: Console) -> int:
    name, lines = without_lines(options.place)
    async with opened(options) as session:
        path = _relative(name, options.workspace)
        await brought_up_to_date(session)
        bundle = await session.preview(_request(options))
        items = _about(bundle.manifest, path, lines)
        if options.json:
            json.dump([_row(item) for item in items], sys.stdout, ensure_ascii=False)
            print()
        elif items:
            served = [item for item in items if item.outcome is not Outcome.EXCLUDED]
            verdict = "is in the context" if served else "was found, but is not in the context"
            console.print(f"{render.safe(options.place)} {verdict}.", style="bold", markup=False, highlight=False)
            for item in items:
                render.print_item(console, item)
        else:
            console.print(_absence(session, path, lines), markup=False, highlight=False, soft_wrap=True)
        record = session.indexed_file(path)
        if record is not None and record.note and not options.json:
            console.print(f"It is cut in line blocks: {record.note}.", markup=False, highlight=False)
    return OK


def _request(options: Options) -> Request:
    question = sys.stdin.read() if options.question == "-" else options.question
    mentions = tuple(_mention(word) for word in options.mention)
    return Request(question, mentions=mentions, model=options.model, budget_tokens=options.budget)


def _mention(word: str) -> Mention:
    """`diff` and `problems` are words of their own here too; `@Name` is `Name`."""
    return mention_of(word.removeprefix("@"))


def _print_json(bundle: Bundle, session: Session) -> None:
    # The wire shape is the language server's, so that a script and an editor read the same thing.
    from haversack.lsp import to_lsp, wire  # noqa: PLC0415 - loads the protocol types, which only JSON needs

    json.dump(wire.write(to_lsp.context(bundle, session.folders)), sys.stdout, ensure_ascii=False)
    print()


def _row(item: ManifestItem) -> object:
    from haversack.lsp import to_lsp, wire  # noqa: PLC0415 - as above

    return wire.write(to_lsp.manifest_item(item))


def _about(manifest: Manifest, path: str, lines: tuple[int, int] | None) -> list[ManifestItem]:
    """Rows of one file, of one place in it when `lines` says so; those that are served first."""
    rows = [item for item in manifest.items if item.path == path]
    if lines is not None:
        start, end = lines
        rows = [row for row in rows if row.lines is None or (row.lines[0] < end and start < row.lines[1])]
    return sorted(rows, key=lambda row: (row.outcome is Outcome.EXCLUDED, -row.score))


def _absence(session: Session, path: str, lines: tuple[int, int] | None) -> str:
    """Why no source brought this place: it is no file, it is not indexed, or nothing in it answers to the question."""
    verdict = check(Path(session.folders[0].root), path, walk_rules(session.settings))
    if isinstance(verdict, Skipped) and verdict.reason is SkipReason.GONE:
        return f"There is no file {path}."
    if isinstance(verdict, Skipped):
        rule = f" by the rule {verdict.rule}" if verdict.rule else ""
        return f"{path} is not in the index: {verdict.reason.value}{rule}."
    why = session.why_skipped(path)
    if why:
        return f"{path} is not in the index: {why}."
    place = path if lines is None else f"{path}, line {lines[0] + 1},"
    return (
        f"{place} is indexed, but no source found anything there that answers to the question. "
        f"To have it in all the same: --mention {shlex.quote(path)}"
    )


def _relative(name: str, workspace: Path) -> str:
    """The path inside the workspace. Raises HaversackError for one outside it."""
    root = workspace.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise HaversackError("path_outside_workspace", f"{name} is not inside {root}.", "Name a file of the workspace.")
    return path.relative_to(root).as_posix()
