"""What of other files goes in: best first while there is room, then in an order that stays from key to key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from haversack.fim.nouns import Cursor
from haversack.fim.window import Window
from haversack.fitting import text_of, without
from haversack.lines import Spans, merged
from haversack.types import Block, Candidate, Decision, Detail, Form, Outcome, Packed, Reason, Scored

# Around each file in a prompt: its path, and the tokens that part it from the next.
FRAME = 8


class Counter(Protocol):
    def count(self, text: str) -> int: ...


def pack_snippets(
    scored: Sequence[Scored], cursor: Cursor, around: Window, most: int, counter: Counter, *, remote: bool
) -> Packed:
    """One decision for each candidate, in their order; blocks by path and line, so that the same choice is the same
    text. Pure."""
    taken: dict[tuple[str, str], Spans] = {(cursor.file.folder, cursor.file.path): ((around.first, around.last),)}
    blocks: list[Block] = []
    decisions: list[Decision] = []
    left = max(0, most)
    for item in scored:
        block, decision = _decided(item, taken, left, counter, remote=remote)
        decisions.append(decision)
        if block is None:
            continue
        left -= block.tokens
        blocks.append(block)
        key = (block.folder, block.path or "")
        taken[key] = merged((*taken.get(key, ()), *block.spans))
    blocks.sort(key=lambda block: (block.folder, block.path or block.title, block.spans))
    return Packed(tuple(blocks), tuple(decisions), max(0, most), max(0, most) - left)


def _decided(
    item: Scored, taken: dict[tuple[str, str], Spans], left: int, counter: Counter, *, remote: bool
) -> tuple[Block | None, Decision]:
    candidate = item.marked.candidate
    forms = candidate.forms if candidate.file is not None else (Form(Detail.FULL, ()),)
    before = counter.count(_text(candidate, forms[0].spans)) if forms else 0

    def out(*reasons: Reason) -> tuple[None, Decision]:
        return None, Decision(candidate.id, Outcome.EXCLUDED, None, reasons, before, 0)

    if item.marked.refused:
        return out(*item.marked.refused)
    if remote and item.marked.restricted:
        return out(Reason.RESTRICTED)
    file = candidate.file
    known = taken.get((file.folder, file.path), ()) if file is not None else ()
    for form in forms:
        spans = without(form.spans, known)
        if file is not None and not spans:
            return out(Reason.COVERED)
        text = _text(candidate, spans)
        tokens = counter.count(text) + counter.count(candidate.title if file is None else file.path) + FRAME
        if tokens > left:
            continue
        is_whole = form is forms[0] and spans == form.spans
        block = Block(
            title=candidate.title if file is None else file.path,
            folder=file.folder if file is not None else "",
            path=file.path if file is not None else None,
            spans=spans,
            kind=candidate.kind,
            detail=form.detail,
            text=text,
            tokens=tokens,
            score=item.score,
            items=(candidate.id,),
            language=file.language if file is not None else "",
        )
        outcome = Outcome.INCLUDED if is_whole else Outcome.SHORTENED
        return block, Decision(candidate.id, outcome, form.detail, (), before, tokens)
    return out(Reason.OVER_BUDGET)


def _text(candidate: Candidate, spans: Spans) -> str:
    return candidate.text if candidate.file is None else text_of(spans, candidate.file.lines)
