"""Who defines the names in sight, and who uses them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from haversack.gatherers.naming import file_flags, lines_id, origin, question_words, title
from haversack.gatherers.outline import definition_forms
from haversack.gatherers.pointed import refusal
from haversack.gatherers.trace import in_trace
from haversack.types import TRACE_PART, Candidate, FileText, HaversackError, Kind, Plan, Problem, Source
from haversack.workspace import Defined, Workspace
from haversack_index.lexical import words
from haversack_index.rank import kind_share
from haversack_index.types import Query, Symbol

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{2,}")
# Names looked up: the question's own come first; a selection may hold hundreds.
MOST_NAMES = 40
# Lines around a cursor that a person has in sight.
LINES_AROUND = 15
MOST_DEFINITIONS = 25
MOST_REFERENCES = 20
# A name with more definitions than this (`get`, `run`, `__init__`) tells nothing by itself.
COMMON_NAME = 6
# Relevance of a definition: asked for by its whole name; seen in the selection or around the cursor.
ASKED = 1.0
IN_SIGHT = 0.6
# Each frame of a trace further out from where it happened matters a little less.
TRACED_STEP = 0.05
# In place of the containers of a name that is written only before another one: `Context` in `Context.invoke` is where
# to look, not what is asked about. Its definition counts half, and its users not at all.
ONLY_CONTAINER = ("",)
# A user of a definition matters less than the definition, more when the question's words are in its name.
USER_SHARE = 0.5


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    asked = _asked(plan)
    used = [name for name, containers in asked.items() if containers != ONLY_CONTAINER]
    sight = await workspace.run(_in_sight, plan, workspace)
    found: dict[str, Candidate] = {}
    n_left = 0
    for folder in workspace.folders_in_play(plan.request.folder):
        for candidate in await workspace.run(_traced, folder.key, plan, workspace):
            found.setdefault(candidate.id, candidate)
        definitions, n_more = await workspace.run(_definitions, folder.key, asked, sight, plan, workspace)
        n_left += n_more
        for candidate in definitions:
            found.setdefault(candidate.id, candidate)
        for candidate in await workspace.run(users_of, folder.key, used, definitions, plan, workspace):
            found.setdefault(candidate.id, candidate)
    if not n_left:
        return tuple(found.values()), ()
    message = f"{n_left} more definitions of the names you ask about were left out."
    problem = Problem(Source.SYMBOLS.value, "symbols_capped", message, "Write a name with its class, or name the file.")
    return tuple(found.values()), (problem,)


def _traced(folder: str, plan: Plan, workspace: Workspace) -> list[Candidate]:
    found: list[Candidate] = []
    for rank, (defined, frame) in enumerate(in_trace(folder, plan, workspace)):
        why = f"{frame.path.rsplit('/', 1)[-1]}:{frame.line + 1} of the trace you pasted"
        relevance = ASKED - TRACED_STEP * rank
        candidate = symbol_candidate(defined, relevance, why, plan, workspace, rank=rank)
        found.append(replace(candidate, parts=((TRACE_PART, relevance),)))
    return found


def _asked(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Names of the question, with the containers written before them: `Context.invoke` is `invoke` in `Context`."""
    names: dict[str, tuple[str, ...]] = {}
    for identifier in plan.identifiers:
        *containers, name = re.split(r"\.|::|->|#", identifier.removesuffix("()")) or [""]
        if name and name not in names:
            names[name] = tuple(container for container in containers if container)
        for container in containers[-1:]:
            names.setdefault(container, ONLY_CONTAINER)
    return dict(list(names.items())[:MOST_NAMES])


@dataclass(frozen=True, slots=True)
class _Sight:
    """What the user has before their eyes: names in order of first use, and the lines they stand in."""

    names: tuple[str, ...] = ()
    folder: str = ""
    path: str = ""
    start: int = 0
    end: int = 0

    def shows(self, defined: Defined) -> bool:
        is_here = (defined.file.folder, defined.file.path) == (self.folder, self.path)
        return is_here and self.start <= defined.symbol.line < self.end


def _in_sight(plan: Plan, workspace: Workspace) -> _Sight:
    """The selection, else the lines around the cursor, else what is on the screen; without any, lines named."""
    active = plan.request.active
    document = workspace.document(active.uri) if active is not None else None
    if active is None:
        return _named_lines(plan, workspace)
    if document is None:
        return _Sight()
    key = (document.folder, document.path) if document.folder and document.path else ("", document.uri)
    file = workspace.read(*key)
    if file is None:
        return _Sight()
    if active.selection is not None and active.selection.start != active.selection.end:
        start, end = active.selection.start.line, active.selection.end.line + 1
    elif active.position is not None:
        start, end = max(0, active.position.line - LINES_AROUND), active.position.line + LINES_AROUND
    elif active.visible:
        start = min(each.start.line for each in active.visible)
        end = max(each.end.line for each in active.visible) + 1
    else:
        return _Sight()
    return _sight(file, start, end)


def _named_lines(plan: Plan, workspace: Workspace) -> _Sight:
    """The first line range among the mentions: who asks about lines has them before their eyes."""
    for mention in plan.mentions:
        if mention.lines is None:
            continue
        with contextlib.suppress(HaversackError):  # the source of mentions tells
            for place in workspace.resolve(mention.value, plan.request.folder):
                file = workspace.read(place.folder, place.path) if not refusal(place, workspace) else None
                if file is not None:
                    return _sight(file, *mention.lines)
    return _Sight()


def _sight(file: FileText, start: int, end: int) -> _Sight:
    names = dict.fromkeys(name for line in file.lines[start:end] for name in _NAME.findall(line))
    return _Sight(tuple(names)[:MOST_NAMES], file.folder, file.path, start, end)


def _definitions(
    folder: str, asked: dict[str, tuple[str, ...]], sight: _Sight, plan: Plan, workspace: Workspace
) -> tuple[list[Candidate], int]:
    """Definitions of the names, best first, and how many of those asked for are past the limit."""
    names = tuple(dict.fromkeys((*asked, *sight.names)))[:MOST_NAMES]
    if not names:
        return [], 0
    defined = workspace.definitions(folder, names, 4 * MOST_DEFINITIONS)
    # A definition the user has before their eyes is no news.
    defined = tuple(each for each in defined if each.symbol.name in asked or not sight.shows(each))
    counts: dict[str, int] = {}
    for each in defined:
        counts[each.symbol.name] = counts.get(each.symbol.name, 0) + 1
    asked_words = question_words(plan)
    scored = [
        (each, _relevance(each.symbol, asked, counts, asked_words, each.file) * _share(each.file.path, plan))
        for each in defined
    ]
    scored = [pair for pair in scored if pair[1] > 0]
    scored.sort(key=lambda pair: (-pair[1], pair[0].file.path, pair[0].symbol.span.start))
    n_left = sum(each.symbol.name in asked for each, _ in scored[MOST_DEFINITIONS:])
    taken = [
        symbol_candidate(
            each,
            relevance,
            f"defines {each.symbol.name}, "
            + ("which you ask about" if each.symbol.name in asked else "used in the lines at hand"),
            plan,
            workspace,
            rank=rank,
        )
        for rank, (each, relevance) in enumerate(scored[:MOST_DEFINITIONS])
    ]
    return taken, n_left


def _relevance(
    symbol: Symbol,
    asked: dict[str, tuple[str, ...]],
    counts: dict[str, int],
    asked_words: frozenset[str],
    file: FileText,
) -> float:
    containers = asked.get(symbol.name)
    if containers is None:
        return 0.0 if counts[symbol.name] > COMMON_NAME else IN_SIGHT / counts[symbol.name] ** 0.5
    if containers and containers[-1] in symbol.container:
        return ASKED
    around = asked_words.intersection(words(f"{file.path} {' '.join(symbol.container)}"))
    share = ASKED / counts[symbol.name] ** 0.5
    return min(ASKED, share + 0.1 * len(around)) * (0.5 if containers else 1.0)


def _share(path: str, plan: Plan) -> float:
    """What is left of a definition's relevance in a test, an example or a document, by the measure of the search."""
    return kind_share(path, Query("", tests_wanted=plan.tests_wanted, docs_wanted=plan.docs_wanted))[1]


def users_of(
    folder: str,
    asked: Iterable[str],
    definitions: Iterable[Candidate],
    plan: Plan,
    workspace: Workspace,
) -> list[Candidate]:
    """Definitions that use the names asked for."""
    best = {candidate.heading[-1]: candidate.relevance for candidate in reversed(list(definitions))}
    names = tuple(name for name in asked if name in best)
    index = workspace.indexes.get(folder)
    if index is None or not names:
        return []
    asked_words = question_words(plan)
    users: dict[tuple[str, int, int], tuple[Defined, float, str]] = {}
    for reference in index.references(names, 4 * MOST_REFERENCES):
        defined = _enclosing(folder, reference.path, reference.name, reference.line, workspace)
        if defined is None or defined.symbol.name == reference.name:
            continue
        shared = len(asked_words.intersection(words(defined.symbol.name)))
        relevance = min(0.95, best[reference.name] * USER_SHARE * (1 + 0.2 * shared)) * _share(reference.path, plan)
        key = (reference.path, defined.symbol.span.start, defined.symbol.span.end)
        if key not in users or users[key][1] < relevance:
            users[key] = (defined, relevance, reference.name)
    ordered = sorted(users.values(), key=lambda user: (-user[1], user[0].file.path, user[0].symbol.span.start))
    return [
        symbol_candidate(user, relevance, f"uses {name}", plan, workspace, rank=MOST_DEFINITIONS + rank)
        for rank, (user, relevance, name) in enumerate(ordered[:MOST_REFERENCES])
    ]


def _enclosing(folder: str, path: str, name: str, line: int, workspace: Workspace) -> Defined | None:
    """The innermost definition of today's text around a use; the use must still be there."""
    file = workspace.read(folder, path)
    if file is None:
        return None
    if line >= len(file.lines) or name not in file.lines[line]:
        again = [number for number, text in enumerate(file.lines) if name in text]
        if not again:
            return None
        line = min(again, key=lambda number: (abs(number - line), number))
    around = [symbol for symbol in workspace.symbols(folder, path) if symbol.span.start <= line < symbol.span.end]
    if not around:
        return None
    return Defined(file, min(around, key=lambda symbol: (symbol.span.end - symbol.span.start, -symbol.depth)))


def symbol_candidate(
    defined: Defined, relevance: float, why: str, plan: Plan, workspace: Workspace, *, rank: int
) -> Candidate:
    file, symbol = defined.file, defined.symbol
    heading = (*symbol.container, symbol.name)
    return Candidate(
        id=lines_id("symbol", file, symbol.span.start, symbol.span.end),
        source=Source.SYMBOLS,
        kind=Kind.SYMBOL,
        title=f"{title(file, workspace)} {'.'.join(heading)}",
        relevance=relevance,
        parts=(("name", relevance),),
        why=why,
        file=file,
        forms=definition_forms(
            file.lines,
            (symbol.span.start, symbol.span.end),
            symbol.signature_end,
            workspace.symbols(file.folder, file.path),
            question_words(plan),
        ),
        heading=heading,
        origins=(origin(file),),
        file_rank=rank,
        flags=file_flags(file),
    )
