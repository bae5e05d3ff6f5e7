"""What is served so far, while `pack` decides: entries with their choices, marginal costs, and the result of it all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from haversack.fitting import (
    Choice,
    Entry,
    FileKey,
    Measure,
    Piece,
    n_characters,
    n_lines,
    pieces_of,
    touches,
    without,
)
from haversack.lines import Spans, merged
from haversack.types import (
    Block,
    Decision,
    Detail,
    FileText,
    Form,
    Kind,
    Outcome,
    Reason,
)

# A text cut to fit is tried at the length that its average line suggests, then shorter by this factor each time.
CUT_STEP = 0.85

# Code takes 3 to 4.5 characters a token; text that would need more than this to fit is not worth counting.
MAX_CHARACTERS_PER_TOKEN = 6

# The usual rate of code, for a prompt that serves none of it.
TOKENS_PER_CHARACTER = 0.27

# Heading and fence of a block take about this much.
FRAME_TOKENS = 12
# Documents that no model may have: that they are restricted for remote ones as well says nothing more.
_KEPT_BACK = frozenset({Reason.PRIVILEGED, Reason.STRATEGY})


@dataclass(slots=True)
class Shelf:
    """The served choices by file, the served texts, and the tokens they use."""

    entries: list[Entry]
    measure: Measure
    budget: int
    used: int = 0
    files: dict[FileKey, list[Choice]] = field(default_factory=dict[FileKey, list[Choice]])
    costs: dict[FileKey, int] = field(default_factory=dict[FileKey, int])
    served: dict[FileKey, Spans] = field(default_factory=dict[FileKey, Spans])
    names: dict[str, list[FileKey]] = field(default_factory=dict[str, list[FileKey]])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    # How often each file's choices changed, and what was worked out for a form of an entry since the last time.
    changes: dict[FileKey, int] = field(default_factory=dict[FileKey, int])
    known_costs: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict[tuple[int, int], tuple[int, int]])
    known_sizes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict[tuple[int, int], tuple[int, int]])

    def open(self) -> Iterator[Entry]:
        """Discardable entries that could still gain something, best first."""
        for entry in sorted(self.entries, key=lambda e: e.place):
            if not (entry.closed or entry.required or entry.chosen is entry.forms[0]):
                yield entry

    def refuse(self, remote: bool, kinds: frozenset[Kind]) -> None:
        """Closes what the marks forbid, and kinds that are not wanted."""
        for entry in self.entries:
            entry.refused = entry.scored.marked.refused
            if remote and entry.scored.marked.restricted and not _KEPT_BACK & set(entry.refused):
                entry.refused = (*entry.refused, Reason.RESTRICTED)
            if not entry.required and entry.kind not in kinds:
                entry.reason, entry.note = Reason.SHARE_CAP, "not part of this recipe"
            entry.closed = bool(entry.refused or entry.reason)

    def put(self, entry: Entry, form: Form, cost: int | None = None) -> None:
        cost = self.marginal(entry, form) if cost is None else cost
        entry.spent += cost
        entry.chosen = form
        self.used += cost
        if entry.file is None or entry.key is None:
            self.texts.setdefault(_text_hash(entry), entry.name)
            return
        key = entry.key
        if key not in self.files:
            self.names.setdefault(entry.file.content_hash, []).append(key)
        self.changes[key] = self.changes.get(key, 0) + 1
        self.files[key] = self._with(entry, form)
        self.costs[key] = self.costs.get(key, 0) + cost
        self.served[key] = merged(span for choice in self.files[key] for span in choice.form.spans)

    def marginal(self, entry: Entry, form: Form) -> int:
        """What serving `entry` in `form` adds to the prompt; it may be nothing, or less when two blocks join."""
        if entry.file is None or entry.key is None:
            return self.measure.alone(entry.choice(form))
        return self.measure.file(self._with(entry, form), entry.file) - self.costs.get(entry.key, 0)

    def _with(self, entry: Entry, form: Form) -> list[Choice]:
        assert entry.key is not None
        others = [choice for choice in self.files.get(entry.key, ()) if choice.place != entry.place]
        return [*others, entry.choice(form)]

    def put_best(
        self,
        entry: Entry,
        limit: int,
        item: int | None = None,
        file: int | None = None,
        min_lines: int | None = None,
    ) -> None:
        """Serves the richest form that fits, better than what is served already, or notes why none does.

        `limit` is the level `used` may reach; `item` and `file` are what this entry, and its file, may take at most.
        With `min_lines`, a form that is too long for `item` is served by its first lines, that many at least.
        """
        if entry.closed or entry.chosen is entry.forms[0] or self._is_copy(entry):
            return
        reason: Reason | None = None
        for number, form in enumerate(entry.forms):
            if entry.chosen is not None and n_lines(form.spans) <= n_lines(entry.chosen.spans):
                break
            allowed, limited_by = limit - self.used, Reason.OVER_BUDGET
            if file is not None and entry.key is not None and file - self.costs.get(entry.key, 0) < allowed:
                allowed, limited_by = file - self.costs.get(entry.key, 0), Reason.FILE_CAP
            if item is not None and item < allowed:
                allowed, limited_by = item, Reason.FILE_CAP
            reason = reason or limited_by
            cuttable = allowed == item and min_lines is not None
            if allowed <= 0 or (not cuttable and self._is_hopeless(entry, number, allowed)):
                continue
            cost = self._known_cost(entry, number)
            if cost <= allowed:
                self.put(entry, form, cost)
                entry.reason = reason if form is not entry.forms[0] else None
                return
            head = self._head(entry, form, cost, allowed, min_lines) if cuttable and min_lines is not None else None
            if head is not None:
                self.put(entry, head)
                entry.reason = reason
                return
        entry.reason = reason or entry.reason

    def _known_cost(self, entry: Entry, number: int) -> int:
        """`marginal` of one of the entry's forms; a form that found no room is asked for again in the next pass."""
        change = self.changes.get(entry.key, 0) if entry.key is not None else 0
        known = self.known_costs.get((entry.place, number))
        if known is None or known[0] != change:
            known = self.known_costs[entry.place, number] = (change, self.marginal(entry, entry.forms[number]))
        return known[1]

    def _is_hopeless(self, entry: Entry, number: int, room: int) -> bool:
        """Whether the form's new lines are so long that counting them would be a waste."""
        if entry.file is None or entry.key is None:
            return entry.n_characters > room * MAX_CHARACTERS_PER_TOKEN
        change = self.changes.get(entry.key, 0)
        known = self.known_sizes.get((entry.place, number))
        if known is None or known[0] != change:
            new = without(entry.forms[number].spans, self.served.get(entry.key, ()))
            known = self.known_sizes[entry.place, number] = (change, n_characters(new, entry.file.lines))
        return known[1] > room * MAX_CHARACTERS_PER_TOKEN

    def _head(self, entry: Entry, form: Form, cost: int, allowed: int, min_lines: int) -> Form | None:
        n = int(n_lines(form.spans) * allowed / cost) if cost else 0
        while n >= min_lines:
            head = Form(form.detail, _first_lines(form.spans, n))
            if self.marginal(entry, head) <= allowed:
                return head
            n = int(n * CUT_STEP)
        return None

    def _is_copy(self, entry: Entry) -> bool:
        """Whether the same text is served already under another name; then the entry is closed with that name."""
        if entry.candidate.order is not None:
            return False  # sections that say the same are still two sections
        if entry.file is None:
            first = self.texts.get(_text_hash(entry))
            if first is not None and entry.candidate.text.strip():
                entry.closed, entry.reason, entry.note = True, Reason.DUPLICATE, f"same text as {first}"
                return True
            return False
        for key in self.names.get(entry.file.content_hash, ()):
            spans = entry.forms[0].spans
            if key != entry.key and spans and not without(spans, self.served[key]):
                entry.closed, entry.reason, entry.note = True, Reason.DUPLICATE, f"same text as {key[1]}"
                return True
        return False

    def fold_copies(self, required: Sequence[Entry]) -> None:
        """Required files with the same text are served once, under a heading that names them all."""
        first: dict[str, Entry] = {}
        for entry in sorted(required, key=lambda e: e.place):
            identity = _text_hash(entry) if entry.file is None else entry.file.content_hash
            if not (identity and entry.n_characters) or entry.candidate.order is not None:
                continue
            other = first.setdefault(identity, entry)
            if other is entry or (other.key == entry.key and entry.key is not None):
                continue
            if other.key is None or entry.file is None:
                same = other.file is None and entry.file is None
            else:
                same = not without(entry.forms[0].spans, other.forms[0].spans)
            if same:
                entry.closed, entry.reason, entry.note = True, Reason.DUPLICATE, f"same text as {other.name}"
                if other.key is not None:
                    self.measure.copies[other.key] = (*self.measure.copies.get(other.key, ()), entry.name)

    def cost_of_all(self, chosen: Sequence[tuple[Entry, Form]]) -> int:
        """What these choices cost together, and nothing else."""
        files: dict[FileKey, list[Choice]] = {}
        total = 0
        for entry, form in chosen:
            if entry.key is None:
                total += self.measure.alone(entry.choice(form))
            else:
                files.setdefault(entry.key, []).append(entry.choice(form))
        for choices in files.values():
            file = choices[0].candidate.file
            total += 0 if file is None else self.measure.file(choices, file)
        return total

    def decisions(self) -> tuple[Decision, ...]:
        served = [(key, self.files[key][0].candidate.file) for key in self.files]
        length = sum(n_characters(self.served[key], file.lines) for key, file in served if file is not None)
        rate = sum(self.costs.values()) / length if length else TOKENS_PER_CHARACTER
        return tuple(self._decision(entry, rate) for entry in self.entries)

    def _decision(self, entry: Entry, rate: float) -> Decision:
        """`rate`, tokens a character, sizes what was not served: counting that would take most of the time."""
        if entry.refused and not entry.n_characters:
            before = 0  # what could not be read has no size
        elif entry.chosen is None and entry.file is not None:
            before = FRAME_TOKENS + int(entry.n_characters * rate)
        else:
            before = self.measure.alone(entry.choice(entry.forms[0]))
        candidate = entry.candidate
        if entry.refused:
            note = candidate.verdict.note if candidate.verdict else ""
            return Decision(candidate.id, Outcome.EXCLUDED, None, entry.refused, before, 0, note)
        if entry.chosen is None and not self._is_covered(entry):
            reasons = (entry.reason or Reason.OVER_BUDGET,)
            return Decision(candidate.id, Outcome.EXCLUDED, None, reasons, before, 0, entry.note)
        if entry.chosen is None or (entry.chosen is not entry.forms[0] and self._is_covered(entry)):
            detail = entry.forms[0].detail
            return Decision(candidate.id, Outcome.INCLUDED, detail, (Reason.COVERED,), before, entry.spent)
        if entry.chosen is entry.forms[0]:
            is_replaced = candidate.verdict is not None and candidate.verdict.redacted
            outcome = Outcome.REDACTED if is_replaced else Outcome.INCLUDED
            return Decision(candidate.id, outcome, entry.chosen.detail, (), before, entry.spent)
        shown, whole = n_lines(entry.chosen.spans), n_lines(entry.forms[0].spans)
        detail = entry.chosen.detail if entry.chosen in entry.forms else _cut_detail(entry.chosen.detail)
        note = f"{shown} of {whole} lines"
        reasons = (entry.reason or Reason.OVER_BUDGET,)
        return Decision(candidate.id, Outcome.SHORTENED, detail, reasons, before, entry.spent, note)

    def _is_covered(self, entry: Entry) -> bool:
        """Whether the prompt holds every line of its richest form, thanks to others."""
        spans = entry.forms[0].spans
        return entry.key is not None and bool(spans) and not without(spans, self.served.get(entry.key, ()))

    def blocks(self) -> tuple[Block, ...]:
        """Best file first, in document order inside a file; texts of no file take their own place among them."""
        groups: list[tuple[int, list[Block]]] = []
        parts: list[tuple[int, int, Block]] = []  # of one document
        by_file: dict[FileKey | None, list[Entry]] = {}
        for entry in sorted(self.entries, key=lambda entry: entry.place):
            by_file.setdefault(entry.key, []).append(entry)
        for key, choices in self.files.items():
            file = choices[0].candidate.file
            if file is not None:
                blocks = [self._block(piece, file, by_file[key]) for piece in pieces_of(choices, file)]
                groups.append((min(choice.place for choice in choices), blocks))
        for entry in self.entries:
            if entry.file is None and entry.chosen is not None:
                block = replace(self.measure.text_block(entry.candidate), score=entry.scored.score)
                if entry.candidate.order is not None:
                    parts.append((entry.candidate.order, entry.place, block))
                else:
                    groups.append((entry.place, [block]))
        if parts:
            groups.append((min(place for _, place, _ in parts), [block for _, _, block in sorted(parts, key=_order)]))
        return tuple(block for _, blocks in sorted(groups, key=lambda group: group[0]) for block in blocks)

    def _block(self, piece: Piece, file: FileText, entries: Sequence[Entry]) -> Block:
        """The block of a piece, with those of its file's entries that are in it; `entries` are best first."""
        inside = [entry for entry in entries if not entry.refused and self._is_in(entry, piece)]
        items = tuple(entry.candidate.id for entry in inside)
        return replace(self.measure.file_block(piece, file), score=inside[0].scored.score, items=items)

    def _is_in(self, entry: Entry, piece: Piece) -> bool:
        if entry.chosen is None:
            return self._is_covered(entry) and touches(entry.forms[0].spans, piece.spans)
        return not piece.spans or touches(entry.chosen.spans, piece.spans)


def _order(part: tuple[int, int, Block]) -> tuple[int, int]:
    return part[:2]


def _cut_detail(detail: Detail) -> Detail:
    return Detail.SPANS if detail is Detail.FULL else detail


def _first_lines(spans: Spans, n: int) -> Spans:
    result: list[tuple[int, int]] = []
    for start, end in spans:
        if n <= 0:
            break
        result.append((start, min(end, start + n)))
        n -= end - start
    return tuple(result)


def _text_hash(entry: Entry) -> str:
    return hashlib.blake2b(entry.candidate.text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
