"""Candidates as line sets, the blocks they make, and what those cost: the arithmetic under `pack`.

Spans are whole lines `(start, end)`, from 0, end exclusive; a normal set of spans is sorted and neither overlaps nor
touches. The unit of cost is the finished block, heading and fence included, so a sum of costs is never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from haversack.lines import Spans, merged
from haversack.templates.chat import GAP_LINE, Counter, render_block
from haversack.types import Block, Candidate, Detail, FileText, Form, Kind, Reason, Scored

FileKey = tuple[str, str]  # folder, path

# Blank lines between two served pieces cost less than a gap line or a second heading.
BLANK_GAP = 2


def without(spans: Spans, taken: Spans) -> Spans:
    """The lines of `spans` that are not in `taken`; both normal."""
    result: list[tuple[int, int]] = []
    for start, end in spans:
        for other_start, other_end in taken:
            if other_end <= start:
                continue
            if other_start >= end:
                break
            if other_start > start:
                result.append((start, other_start))
            start = max(start, other_end)  # noqa: PLW2901 - the part left of the hole is done
        if start < end:
            result.append((start, end))
    return tuple(result)


def n_lines(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


def n_characters(spans: Spans, lines: Sequence[str]) -> int:
    return sum(len("".join(lines[start:end])) for start, end in spans)


def closed(spans: Spans, lines: Sequence[str]) -> Spans:
    """The set with gaps closed that hold nothing but one or two blank lines."""
    result: list[tuple[int, int]] = []
    for start, end in spans:
        if result and start - result[-1][1] <= BLANK_GAP and not "".join(lines[result[-1][1] : start]).strip():
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return tuple(result)


def text_of(spans: Spans, lines: Sequence[str]) -> str:
    """The lines themselves, with a gap line in each hole."""
    return GAP_LINE.join("".join(lines[start:end]) for start, end in spans)


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate and the form it is served in. `place` is its rank among all, best 0."""

    place: int
    scored: Scored
    form: Form

    @property
    def candidate(self) -> Candidate:
        return self.scored.marked.candidate


@dataclass(frozen=True, slots=True)
class Piece:
    """A block before it is written: its lines, how they are shown, and the best candidate in it."""

    spans: Spans
    detail: Detail
    best: Choice


# How rich a form is, richest first; a block of several forms carries the richest.
_RICHNESS = {detail: place for place, detail in enumerate(Detail)}


def pieces_of(choices: Sequence[Choice], file: FileText) -> tuple[Piece, ...]:
    """The blocks of one file: each run of whole text, and one block for all lines shown only in part."""
    if len(choices) == 1:
        return _pieces_of_one(choices[0], file)
    full = closed(merged(s for c in choices if c.form.detail is Detail.FULL for s in c.form.spans), file.lines)
    rest = merged(s for c in choices if c.form.detail is not Detail.FULL for s in c.form.spans)
    part = without(closed(rest, file.lines), full)
    pieces = [Piece((run,), Detail.FULL, _best_of(choices, (run,), True)) for run in full]
    if part:
        best = _best_of(choices, part, False)
        shown = min((c.form.detail for c in choices if c.form.detail is not Detail.FULL), key=_RICHNESS.__getitem__)
        pieces.append(Piece(part, Detail.OUTLINE if shown is Detail.SIGNATURE else shown, best))
    if not pieces and choices:
        pieces.append(Piece((), Detail.FULL, min(choices, key=lambda c: c.place)))  # an empty file that must be named
    return tuple(sorted(pieces, key=lambda piece: piece.spans))


def _pieces_of_one(choice: Choice, file: FileText) -> tuple[Piece, ...]:
    """What `pieces_of` gives for one choice, which is how most costs are asked for."""
    spans, detail = closed(merged(choice.form.spans), file.lines), choice.form.detail
    if detail is Detail.FULL or not spans:
        return tuple(Piece((run,), Detail.FULL, choice) for run in spans) or (Piece((), Detail.FULL, choice),)
    return (Piece(spans, Detail.OUTLINE if detail is Detail.SIGNATURE else detail, choice),)


def _best_of(choices: Sequence[Choice], spans: Spans, full: bool) -> Choice:
    inside = [c for c in choices if (c.form.detail is Detail.FULL) is full and touches(c.form.spans, spans)]
    return min(inside, key=lambda c: c.place)


def touches(spans: Spans, others: Spans) -> bool:
    return any(start < end and a < end and start < b for start, end in spans for a, b in others)


@dataclass(slots=True)
class Entry:
    """A candidate on its way. `place` is its rank, best 0; `forms` are richest first, one at least.

    `reason` says why it is not served, or not whole; `closed` that nothing can change that.
    """

    place: int
    scored: Scored
    forms: tuple[Form, ...]
    relevance: float
    n_characters: int
    chosen: Form | None = None
    reason: Reason | None = None
    refused: tuple[Reason, ...] = ()
    closed: bool = False
    spent: int = 0
    note: str = ""
    candidate: Candidate = field(init=False)
    file: FileText | None = field(init=False)
    key: FileKey | None = field(init=False)

    def __post_init__(self) -> None:
        self.candidate = self.scored.marked.candidate
        self.file = self.candidate.file
        self.key = None if self.file is None else (self.file.folder, self.file.path)

    @property
    def kind(self) -> Kind:
        return self.candidate.kind

    @property
    def required(self) -> bool:
        return self.scored.marked.required

    @property
    def name(self) -> str:
        return self.candidate.title if self.file is None else self.file.path

    def choice(self, form: Form) -> Choice:
        return Choice(self.place, self.scored, form)


def entries_of(scored: Sequence[Scored]) -> list[Entry]:
    """Entries in the order of `scored`, with places that do not depend on that order."""
    ranked = sorted(range(len(scored)), key=lambda index: _rank(scored[index]))
    places = {index: place for place, index in enumerate(ranked)}
    return [_entry(item, places[index]) for index, item in enumerate(scored)]


def _rank(item: Scored) -> tuple[object, ...]:
    candidate = item.marked.candidate
    path = "" if candidate.file is None else f"{candidate.file.folder}/{candidate.file.path}"
    spans = tuple(form.spans for form in candidate.forms)
    return (item.tier, -item.score, candidate.id, path, spans, candidate.title, candidate.text)


def _entry(item: Scored, place: int) -> Entry:
    candidate = item.marked.candidate
    relevance = sum(value for name, value in item.parts if name != "tier")
    if candidate.file is None:
        return Entry(place, item, (Form(Detail.FULL, ()),), relevance, len(candidate.text))
    lines = candidate.file.lines
    given = candidate.forms or (Form(Detail.FULL, ((0, len(lines)),)),)
    forms = tuple(Form(form.detail, merged((max(0, a), min(b, len(lines))) for a, b in form.spans)) for form in given)
    return Entry(place, item, forms, relevance, n_characters(forms[0].spans, lines))


@dataclass(slots=True)
class Measure:
    """Finished blocks with their cost, each written and counted once. `folders`: names need their folder's name."""

    counter: Counter
    folders: bool = False
    copies: dict[FileKey, tuple[str, ...]] = field(default_factory=dict[FileKey, tuple[str, ...]])
    seen: dict[tuple[FileKey, Spans, Detail, Kind], Block] = field(
        default_factory=dict[tuple[FileKey, Spans, Detail, Kind], Block]
    )

    def alone(self, choice: Choice) -> int:
        """What the choice costs when nothing else of its file is served."""
        file = choice.candidate.file
        return self.text_block(choice.candidate).tokens if file is None else self.file((choice,), file)

    def file(self, choices: Sequence[Choice], file: FileText) -> int:
        return sum(self.file_block(piece, file).tokens for piece in pieces_of(choices, file))

    def file_block(self, piece: Piece, file: FileText) -> Block:
        """The block of a piece, its score and items still to be filled in."""
        kind = piece.best.candidate.kind
        key = ((file.folder, file.path), piece.spans, piece.detail, kind)
        block = self.seen.get(key)
        if block is None:
            text = text_of(piece.spans, file.lines)
            title = self._title(file)
            block = self._counted(
                Block(title, file.folder, file.path, piece.spans, kind, piece.detail, text, 0, 0.0, (), file.language)
            )
            self.seen[key] = block
        return block

    def text_block(self, candidate: Candidate) -> Block:
        text, items = candidate.text, (candidate.id,)
        return self._counted(Block(candidate.title, "", None, (), candidate.kind, Detail.FULL, text, 0, 0.0, items))

    def _counted(self, block: Block) -> Block:
        return replace(block, tokens=self.counter.count(render_block(block)))

    def _title(self, file: FileText) -> str:
        name = f"{file.folder}/{file.path}" if self.folders and file.folder else file.path
        notes = ["unsaved"] if file.unsaved else []
        notes += [f"same text as {copy}" for copy in self.copies.get((file.folder, file.path), ())]
        return f"{name} [{'; '.join(notes)}]" if notes else name
