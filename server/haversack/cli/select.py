"""`haversack select` shows one document: what it is, its sections, and what of it a model would read."""

from __future__ import annotations

import json
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haversack.cli import render
from haversack.cli.arguments import OK, Options
from haversack.cli.opening import opened, run_async
from haversack.mention_syntax import without_lines
from haversack.policy.catalogue import full_name
from haversack.session import Session
from haversack.types import (
    DocumentFocus,
    DocumentIdentity,
    DocumentSelection,
    Kind,
    Outcome,
    Position,
    Purpose,
    Range,
    Request,
    Section,
    Selected,
)

# Characters of a hash or an id in the manifest's line.
SHORT = 12


def run(options: Options) -> int:
    return run_async(_select, options)


async def _select(options: Options, console: Console) -> int:
    """The index is not brought up to date first: a document that it does not know is read by itself."""
    async with opened(options) as session:
        found = await session.select(_request(options))
        if options.json:
            _print_json(found, session)
        else:
            _print_card(console, found.identity)
            console.print()
            _print_sections(console, found.sections)
            console.print()
            console.print(_manifest_line(found), markup=False, highlight=False, soft_wrap=True)
            render.print_problems(console, found.bundle.problems)
    return OK


def _request(options: Options) -> Request:
    name, lines = without_lines(options.place)
    span = Range(Position(lines[0], 0), Position(lines[1], 0)) if lines is not None else None
    pointed = DocumentFocus(tuple(options.section), span, options.quote)
    return Request(
        options.question,
        model=options.model,
        budget_tokens=options.budget,
        tenant=options.tenant,
        document=DocumentSelection(
            name,
            pointed if pointed != DocumentFocus() else None,
            Purpose.VIEW if options.view else Purpose.AGENT,
        ),
    )


def _print_json(found: Selected, session: Session) -> None:
    from haversack.lsp import to_lsp, wire  # noqa: PLC0415 - loads the protocol types, which only JSON needs

    json.dump(wire.write(to_lsp.selected(found, session.folders)), sys.stdout, ensure_ascii=False)
    print()


def _print_card(console: Console, card: DocumentIdentity) -> None:
    table = render.facts()
    table.add_row("title", _words(card.title or "not known"))
    table.add_row("kind", _words(card.kind))
    indexed = "not indexed as it is now" if card.generation is None else f"indexed (generation {card.generation})"
    table.add_row("status", _words(f"{card.status}, {indexed}"))
    table.add_row("size", f"{card.n_lines:,} lines, {card.n_characters:,} characters")
    table.add_row("gist", _words(card.gist or "not known"))
    render.print_titled(console, render.one_line(card.path), table)


def _print_sections(console: Console, sections: tuple[Section, ...]) -> None:
    table = Table(box=None, padding=render.GAP)
    table.add_column("focus")
    table.add_column("lines", justify="right")
    table.add_column("section", overflow="fold")
    table.add_column("kind")
    table.add_column("summary", overflow="fold")
    for section in sections:
        summary = _words(section.summary)
        if section.summary_truncated:
            summary.append(" (cut)", style="yellow")
        table.add_row(
            Text(">" if section.focus else "", style="bold green"),
            render.numbers(section.lines),
            _words(section.id),
            section.kind,
            summary,
        )
    render.print_titled(console, "Sections, in the order of the document", table)


def _manifest_line(found: Selected) -> str:
    """How much of the document is in, what it takes, and under which names the answer can be looked up."""
    bundle = found.bundle
    rows = [row for row in bundle.manifest.items if row.kind is Kind.SECTION_SUMMARY]
    reasons = dict.fromkeys(reason for row in rows if row.outcome is Outcome.EXCLUDED for reason in row.reasons)
    tokens = bundle.manifest.tokens
    parts = [
        f"{len(found.sections):,} of {len(rows):,} sections" + (f" ({'; '.join(reasons)})" if reasons else ""),
        f"{tokens.context:,} tokens of {tokens.context_budget:,}",
        f"for {render.one_line(full_name(bundle.route.model))}" if bundle.prompt.messages else "for a person",
        f"hash {bundle.version_hash[:SHORT]}",
    ]
    if found.truncated:
        parts.insert(1, "truncated")
    if bundle.record_id:
        parts.append(f"record {bundle.record_id[:SHORT]}")
    return f"Manifest: {' · '.join(parts)}"


def _words(text: str) -> Text:
    """One line, as tables in a pipe are read line by line."""
    return Text(render.one_line(" ".join(text.split())))
