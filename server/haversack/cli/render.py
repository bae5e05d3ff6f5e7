"""Bundles and statuses as a person reads them: columns and bars, in a pipe as wide as their longest line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from haversack.cli.arguments import BROKEN_PIPE
from haversack.policy.catalogue import full_name
from haversack.types import Block, Bundle, ManifestItem, Outcome, Problem, Route, TokenUse
from haversack_index.types import IndexState, IndexStatus

# A terminal line of text never carries control characters of a file name or of file text to the terminal.
_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if code not in (9, 10)}

_BREAKS = {9: "\ufffd", 10: "\ufffd"}

# Between columns: two blanks, as there are no rules.
GAP = (0, 2, 0, 0)

# Wide enough to see a tenth of the window, narrow enough to stand beside its figures in 80 columns.
BAR_WIDTH = 30

# Below this many columns the paths and reasons need the room of a column that only ranks what is in order already.
NARROW = 100

# Rows of what stayed out that a person still reads; the rest is a count, and all of it is in `--json`.
MAX_EXCLUDED_ROWS = 12

# Columns of a table in a pipe or a file: so many that each row is one line, for the tools that read lines.
PIPE_WIDTH = 2_000


class Output(Console):
    """Standard output. A reader that goes away (`haversack context ... | head`) ends the command with its own code."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else PIPE_WIDTH)

    def on_broken_pipe(self) -> None:
        sys.stderr.close()
        raise SystemExit(BROKEN_PIPE)


OUTCOME_STYLE = {
    Outcome.INCLUDED: "green",
    Outcome.SHORTENED: "yellow",
    Outcome.REDACTED: "yellow",
    Outcome.EXCLUDED: "dim",
}


def print_bundle(console: Console, bundle: Bundle, *, show_text: bool = True, all_rows: bool = False) -> None:
    """The packed context, then its manifest: what went in, what stayed out and why, where the window went."""
    if show_text:
        for block in bundle.blocks:
            _print_block(console, block)
    if bundle.manifest.items:
        _print_items(console, bundle.manifest.items, all_rows=all_rows)
    elif bundle.manifest.classification.get("codebase"):
        console.print("Nothing was found that answers to the question.", markup=False, highlight=False)
    else:
        reason = safe(str(bundle.manifest.classification.get("reason", "")))
        console.print(f"Nothing was gathered ({reason}).", markup=False, highlight=False, soft_wrap=True)
    console.print()
    _print_route(console, bundle.route)
    console.print()
    _print_tokens(console, bundle.manifest.tokens, bundle)
    console.print()
    console.print(_timings_line(bundle), soft_wrap=True)
    print_problems(console, bundle.problems)


def print_status(console: Console, statuses: Iterable[IndexStatus]) -> None:
    """One table per workspace folder: counts, then skipped files by reason."""
    for status in statuses:
        table = facts()
        # A stored index of generation 0 is none; what is said of its state is that of a pass to come.
        built = status.generation > 0 or status.state is not IndexState.SCANNING
        state = f"{status.state.value} (generation {status.generation})" if built else "not built yet"
        table.add_row("state", state)
        table.add_row("files", f"{status.n_files:,}")
        table.add_row("chunks", f"{status.n_chunks:,}")
        table.add_row("symbols", f"{status.n_symbols:,}")
        table.add_row("vectors", f"{status.n_vectors:,}  ({safe(status.embedder) or 'none'})")
        for reason, count in sorted(status.skipped.items(), key=lambda pair: (-pair[1], pair[0])):
            table.add_row(f"skipped: {reason}", f"{count:,}")
        for problem in status.problems:
            table.add_row("problem", safe(problem))
        print_titled(console, f"Index of {one_line(status.folder)}", table)


def print_problems(console: Console, problems: Sequence[Problem]) -> None:
    for problem in problems:
        line = Text("! ", style="yellow")
        line.append(f"{problem.stage}: {one_line(problem.message)}")
        if problem.remedy:
            line.append(f" {safe(problem.remedy)}", style="dim")
        console.print(line, soft_wrap=True)


def print_item(console: Console, item: ManifestItem) -> None:
    """All that is known about one candidate."""
    table = facts()
    table.add_row("outcome", Text(item.outcome.value, style=OUTCOME_STYLE[item.outcome]))
    if item.reasons:
        table.add_row("because", safe("; ".join(item.reasons)))
    if item.note:
        table.add_row("note", safe(item.note))
    table.add_row("found by", f"{item.source.value} ({item.kind.value})")
    table.add_row("why", safe(item.why))
    table.add_row("detail", item.detail.value if item.detail else "-")
    table.add_row("tokens", f"{item.tokens_after:,} of {item.tokens_before:,}")
    table.add_row("score", f"{item.score:.3f}")
    for name, value in item.parts:
        table.add_row(f"  {safe(name)}", f"{value:+.3f}")
    if item.flags:
        table.add_row("flags", safe(", ".join(item.flags)))
    print_titled(console, one_line(place(item)), table)


def place(item: ManifestItem) -> str:
    """`path:10-20` as a person writes it, lines from 1; the title for what is not in a file."""
    if not item.path:
        return item.title
    if item.lines is None:
        return item.path
    return f"{item.path}:{numbers(item.lines)}"


def numbers(lines: tuple[int, int]) -> str:
    """`10-20` as a person counts, from 1 and both ends in; `10` for a single line."""
    first, last = lines[0] + 1, max(lines[1], lines[0] + 1)
    return f"{first}" if first == last else f"{first}-{last}"


def relevance(item: ManifestItem) -> float:
    """The score within its tier; the tier itself is the order of kinds, and would only hide the difference."""
    return item.score - sum(value for name, value in item.parts if name == "tier")


def one_line(text: str) -> str:
    """`safe` text for a row or a heading: a file name may hold a line break."""
    return safe(text.translate(_BREAKS))


def safe(text: str) -> str:
    """Text from the workspace without control characters, so that a file name cannot drive the terminal."""
    return text.translate(_CONTROL)


def bar(used: int, total: int, width: int = BAR_WIDTH) -> str:
    filled = 0 if total <= 0 else min(width, round(width * used / total))
    return "█" * filled + "░" * (width - filled)


def _print_block(console: Console, block: Block) -> None:
    lines = ", ".join(numbers(span) for span in block.spans)
    title = Text(one_line(block.path or block.title), style="bold cyan")
    title.append(f"  {lines}  " if lines else "  ", style="cyan")
    title.append(f"{block.detail.value} · {block.tokens:,} tokens", style="dim")
    console.print(title, soft_wrap=True)
    text = safe(block.text).rstrip("\n")
    if console.is_terminal:
        console.print(Syntax(text, block.language or "text", word_wrap=True, background_color="default"))
    else:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print()


def print_titled(console: Console, title: str, table: Table) -> None:
    """A table's own title would be folded to the table's width."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)


def facts() -> Table:
    """Lines of name and value."""
    table = Table(box=None, show_header=False, padding=GAP)
    table.add_column()
    table.add_column(overflow="fold")
    return table


def _print_items(console: Console, items: Sequence[ManifestItem], *, all_rows: bool) -> None:
    narrow = console.width < NARROW
    table = Table(box=None, padding=GAP)
    table.add_column("outcome")
    table.add_column("item", overflow="fold")
    table.add_column("detail")
    table.add_column("tokens", justify="right")
    if not narrow:
        table.add_column("relevance", justify="right")
    table.add_column("why", overflow="fold")
    hidden = 0
    n_excluded = 0
    for item in items:
        if item.outcome is Outcome.EXCLUDED:
            n_excluded += 1
            if n_excluded > MAX_EXCLUDED_ROWS and not all_rows:
                hidden += 1
                continue
        why = "; ".join(item.reasons) if item.reasons else item.why
        table.add_row(
            Text(item.outcome.value, style=OUTCOME_STYLE[item.outcome]),
            escape(one_line(place(item))) + (" [bold](required)[/bold]" if item.required else ""),
            item.detail.value if item.detail else "-",
            f"{item.tokens_after:,}" if item.tokens_after else f"({item.tokens_before:,})",
            *(() if narrow else (f"{relevance(item):.2f}",)),
            escape(one_line(why)),
        )
    print_titled(console, "Manifest: what the model reads, and what it does not", table)
    if hidden:
        rest = f"and {hidden:,} more that stayed out (--all shows them, --json has everything)"
        console.print(Text(rest, style="dim italic"), soft_wrap=True)


def _print_route(console: Console, route: Route) -> None:
    """The model, who chose it, and why each one before it lost."""
    table = facts()
    table.add_row("model", escape(one_line(full_name(route.model))), "local" if route.model.local else "remote")
    table.add_row("chosen by", escape(one_line(route.chosen_by)))
    table.add_row("task", route.task_type.value, f"{route.effort.value} effort")
    if route.degraded:
        table.add_row("without", ", ".join(route.degraded), "the policy allows it")
    if route.cost is not None and not route.model.local:
        limit = f"limit ${route.cost.limit}" if route.cost.limit else ""
        table.add_row("cost", f"${route.cost.low} to ${route.cost.high}", limit)
    if route.approvals:
        table.add_row("ask first", ", ".join(route.approvals))
    for skip in route.skipped:
        table.add_row(Text("skipped", style="dim"), escape(one_line(f"{skip.model}: {skip.reason}")), skip.code)
    print_titled(console, "Route", table)


def _print_tokens(console: Console, use: TokenUse, bundle: Bundle) -> None:
    model = bundle.route.model
    name = f"{model.provider}/{model.name}{', which is not in the catalogue' if model.assumed else ''}"
    window = f"an assumed {use.window:,}" if use.window_source == "assumed" else f"{use.window:,}"
    title = f"Tokens for {one_line(name)}: {use.total:,} of {window} ({use.counted}, {use.counter})"
    table = facts()
    table.columns[1].justify = "right"
    rows = (
        ("context", use.context, f"of a budget of {use.context_budget:,}"),
        ("history", use.history, ""),
        ("question", use.question, ""),
        ("system", use.system, ""),
        ("tools", use.tools, ""),
        ("reply reserve", use.reply_reserve, "kept free for the answer"),
    )
    for name, tokens, note in rows:
        table.add_row(name, f"{tokens:,}", bar(tokens, use.window), note)
    print_titled(console, title, table)


def _timings_line(bundle: Bundle) -> Text:
    line = Text("Time: ", style="dim")
    line.append(
        " · ".join(
            f"{timing.name} {timing.milliseconds:.0f} ms" + ("" if timing.status == "ok" else f" ({timing.status})")
            for timing in bundle.manifest.timings
        )
    )
    return line
