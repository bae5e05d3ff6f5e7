"""`haversack context` packs a question's context; `haversack explain` says why one place is in it, or not."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import cast

from rich.console import Console

from haversack.cli import render
from haversack.cli.arguments import OK, Options
from haversack.cli.opening import brought_up_to_date, opened, run_async
from haversack.config import walk_rules
from haversack.mention_syntax import mention_of, without_lines
from haversack.policy.document import Kind, parse_text
from haversack.session import Session
from haversack.types import Bundle, HaversackError, Manifest, ManifestItem, Mention, Outcome, Request
from haversack_index.types import IndexState, IndexStatus, SkipReason
from haversack_index.walk import Skipped, check


def run(options: Options) -> int:
    return run_async(_context, options)


def explain(options: Options) -> int:
    return run_async(_explain, options)


async def _context(options: Options, console: Console) -> int:
    async with opened(options) as session:
        _tell(await brought_up_to_date(session))
        bundle = await session.context(_request(options))
        if options.json:
            _print_json(bundle, session)
        elif options.prompt:
            for message in bundle.prompt.messages:
                sys.stdout.write(f"[{message.role.value}]\n{message.content}\n\n")
            # The prompt has no place for what it had to do without, and whoever pipes it on must hear of it.
            render.print_problems(Console(stderr=True), bundle.problems)
        else:
            render.print_bundle(console, bundle, all_rows=options.all)
    return OK


async def _explain(options: Options, console: Console) -> int:
    name, lines = without_lines(options.place)
    async with opened(options) as session:
        path = _relative(name, options.workspace)
        _tell(await brought_up_to_date(session))
        bundle = await session.preview(_request(options))
        items = _about(bundle.manifest, path, lines)
        if options.json:
            json.dump([_row(item) for item in items], sys.stdout, ensure_ascii=False)
            print()
        if not items:
            # Beside the empty list of a script, the reason is for the person who reads its log.
            absence = render.one_line(_absence(session, path, lines))
            said = Console(stderr=True) if options.json else console
            said.print(absence, markup=False, highlight=False, soft_wrap=True)
        elif not options.json:
            verdict = f"{render.one_line(options.place)} {_verdict(bundle, path, lines)}."
            console.print(verdict, style="bold", markup=False, highlight=False, soft_wrap=True)
            for item in items:
                console.print()
                render.print_item(console, item)
        record = session.indexed_file(path)
        if record is not None and record.note and not options.json:
            console.print(f"It is cut in line blocks: {record.note}.", markup=False, highlight=False)
    return OK


def _tell(status: IndexStatus) -> None:
    """What keeps the index from answering fully, on stderr: whatever the shape of the output, it is worse for it."""
    lines = list(status.problems) if status.state is IndexState.DEGRADED else []
    if not lines and status.n_files == 0:
        lines = ["No file of this folder is indexed; `haversack index` says how many are skipped and why."]
    errors = Console(stderr=True)
    for line in lines:
        errors.print(f"! {render.one_line(line)}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def _request(options: Options) -> Request:
    question = sys.stdin.read() if options.question == "-" else options.question
    mentions = tuple(_mention(word) for word in options.mention)
    policy = None if options.policy is None else _policy(options.policy)
    return Request(
        question,
        mentions=mentions,
        model=options.model,
        budget_tokens=options.budget,
        policy=policy,
        intent=options.intent,
        effort=options.effort,
        needs=tuple(options.need),
        local_only=options.local_only,
        providers=None if options.provider is None else tuple(options.provider),
    )


def _policy(path: Path) -> dict[str, object]:
    """A policy file for this question alone. Raises HaversackError when nothing in it can be used."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise HaversackError(
            "policy_unreadable", f"The policy {path} can't be read: {why}.", "Check --policy."
        ) from None
    document = parse_text(text, Kind.REQUEST, str(path))
    whole = next((each for each in document.findings if not each.place), None)
    if whole is not None:
        line = whole.range.start.line + 1
        raise HaversackError("policy_unreadable", f"{path}, line {line}: {whole.message}", whole.remedy)
    return cast("dict[str, object]", json.loads(text))


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


def _verdict(bundle: Bundle, path: str, lines: tuple[int, int] | None) -> str:
    """Whether the place is read by the model: of an outline, only the lines it shows are."""
    spans = [span for block in bundle.blocks if block.path == path for span in block.spans]
    if not spans:
        return "was found, but is not in the context"
    if lines is None:
        return f"is in the context, with lines {', '.join(render.numbers(span) for span in spans)}"
    start, end = lines
    # No line is served twice, so the shares of the spans add up.
    n_shown = sum(max(0, min(end, last) - max(start, first)) for first, last in spans)
    if n_shown == 0:
        return "is not in the context, but other lines of its file are"
    return "is in the context" if n_shown == end - start else f"is in the context in part, with {n_shown} lines"


def _absence(session: Session, path: str, lines: tuple[int, int] | None) -> str:
    """Why no source brought this place: it is no file, it is not indexed, or nothing in it answers to the question."""
    root = Path(session.folders[0].root)
    if (root / path).is_dir():
        return f"{path} is a folder. Name a file in it."
    verdict = check(root, path, walk_rules(session.settings))
    if isinstance(verdict, Skipped) and verdict.reason is SkipReason.GONE:
        return f"There is no file {path}."
    if isinstance(verdict, Skipped):
        rule = f" by the rule {verdict.rule}" if verdict.rule else ""
        return f"{path} is not in the index: {verdict.reason.value}{rule}."
    why = session.why_skipped(path)
    if why:
        return f"{path} is not in the index: {why}."
    record = session.indexed_file(path)
    if lines is not None and record is not None and lines[0] >= record.n_lines:
        return f"{path} has {record.n_lines:,} lines."
    place = path if lines is None else f"{path}:{render.numbers(lines)}"
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
