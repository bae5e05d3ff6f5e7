"""The receipt: one row for every candidate, where the tokens went, and a hash of all that decided it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter

from haversack.policy.injection import reads_like_orders
from haversack.policy.secrets import without_secrets
from haversack.templates.chat import has_control_tokens, has_invisible_text, label
from haversack.types import (
    Block,
    Candidate,
    Decision,
    DocumentFocus,
    Kind,
    Manifest,
    ManifestItem,
    Outcome,
    Packed,
    Plan,
    Problem,
    Prompt,
    Reason,
    Route,
    Scored,
    Source,
    Timing,
    TokenUse,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the stages report besides their results. `index`: generation and tier per folder, `folders`: their names."""

    tokens: TokenUse
    timings: tuple[Timing, ...] = ()
    problems: tuple[Problem, ...] = ()
    index: Mapping[str, object] | None = None
    folders: tuple[str, ...] = ()
    route: Route | None = None


def record(scored: Sequence[Scored], packed: Packed, plan: Plan, circumstances: Circumstances) -> Manifest:
    """The manifest of a packed prompt. It carries names, numbers and reasons, never a candidate's text.

    Equal inputs give an equal hash; timings and the wording of problems do not enter it.
    """
    warnings = _warnings(packed.blocks)
    rows = [
        _row(item, decision, warnings.get(decision.id, ()), circumstances.folders)
        for item, decision in zip(scored, packed.decisions, strict=True)
    ]
    rows.sort(key=lambda row: (_ORDER[row.outcome], -row.score, row.id))
    classification = _classification(plan)
    index = dict(circumstances.index or {})
    decided = {
        "items": rows,
        "tokens": circumstances.tokens,
        "problems": [[problem.stage, problem.code] for problem in circumstances.problems],
        "classification": classification,
        "index": index,
        "selection": plan.selection,
        "route": None if circumstances.route is None else _chosen(circumstances.route),
    }
    return Manifest(
        items=tuple(rows),
        timings=circumstances.timings,
        tokens=circumstances.tokens,
        problems=circumstances.problems,
        classification=classification,
        index=index,
        hash=canonical_hash(decided),
        selection=plan.selection,
    )


def version_hash(prompt: Prompt, route: Route, focus: DocumentFocus | None = None) -> str:
    """Identity of what a model would see, of the model, and of how it is asked: equal hashes mean an answer can be
    reused."""
    messages = [
        [m.role, m.content, m.tool_calls, m.tool_call_id, m.name, [image.reference for image in m.images]]
        for m in prompt.messages
    ]
    # Two questions about one place may be served the same: what they point at tells them apart, where there is such.
    pointed = {} if focus is None else {"focus": focus}
    return canonical_hash({"messages": messages, **_chosen(route), **pointed})


def _chosen(route: Route) -> dict[str, object]:
    """What of a route changes what is sent; which rule led there and which models lost does not."""
    model = route.model
    return {"model": model.name, "provider": model.provider, "effort": route.effort, "degraded": route.degraded}


def canonical_hash(value: object) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def canonical_json(value: object) -> str:
    """Sorted keys, no blanks, ASCII, so that platforms and orders of making agree.

    Dataclasses are objects of their fields, tuples arrays; of anything else JSON lacks, the text form counts.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain)


# What somebody gave a title in words of its own; of other texts without a file, titles are Haversack's.
_TITLED_BY_TEXT = frozenset({Kind.MEMORY, Kind.SUPPLIED})
# The most characters of a text of which all but a secret may be known, or tried.
GUESSABLE = 2_000
_ORDER = {Outcome.INCLUDED: 0, Outcome.SHORTENED: 1, Outcome.REDACTED: 1, Outcome.EXCLUDED: 2}


def _row(item: Scored, decision: Decision, warnings: Sequence[str], folders: Sequence[str]) -> ManifestItem:
    candidate = item.marked.candidate
    file = candidate.file
    folder, path = _place(candidate, folders)
    names = (candidate.title, path or "")
    flags = dict.fromkeys((*candidate.flags, *warnings, *decision.flags))
    if any(label(name) != name for name in names):
        flags["escaped-name"] = None
    return ManifestItem(
        id=candidate.id,
        source=candidate.source,
        kind=candidate.kind,
        title=_title(candidate, decision, path),
        folder=folder,
        path=path,
        lines=_cover(candidate),
        required=item.marked.required,
        restricted=item.marked.restricted,
        outcome=decision.outcome,
        detail=decision.detail,
        reasons=tuple([reason.value for reason in decision.reasons]),
        tokens_before=decision.tokens_before,
        tokens_after=decision.tokens_after,
        score=item.score,
        parts=item.parts,
        why=_why(candidate, decision),
        content_hash=file.content_hash if file else _text_hash(candidate.text),
        flags=tuple(flags),
        note=decision.note,
        verdict=_verdict(candidate, decision),
    )


def _title(candidate: Candidate, decision: Decision, path: str | None) -> str:
    """Headings and names of definitions are text of their file: of what was held back, the path alone is told."""
    is_text = candidate.file is not None or candidate.kind in _TITLED_BY_TEXT
    if is_text and not _HELD_BACK.isdisjoint(decision.reasons):
        return label(path or candidate.kind.value)
    return label(candidate.title if candidate.file is not None else without_secrets(candidate.title))


def _why(candidate: Candidate, decision: Decision) -> str:
    """What led there, but no name of a definition, which these sources found in the file that was held back."""
    is_held_back = candidate.file is not None and not _HELD_BACK.isdisjoint(decision.reasons)
    if candidate.source in _NAMING_SOURCES and is_held_back:
        return f"found by {candidate.source.value}"
    return candidate.why


# Reasons by which the reader may have no word of an item: its model may not, or the reader may not.
_HELD_BACK = frozenset({Reason.RESTRICTED, Reason.PRIVILEGED, Reason.STRATEGY, Reason.OUTSIDE})
_NAMING_SOURCES = frozenset({Source.SYMBOLS, Source.DIFF, Source.HYBRID})


def _verdict(candidate: Candidate, decision: Decision) -> Verdict | None:
    """Nothing is selected of an item that qualified and found no place in the prompt."""
    if candidate.verdict is None or decision.outcome is not Outcome.EXCLUDED:
        return candidate.verdict
    return replace(candidate.verdict, selected="")


def _warnings(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Flags of each candidate that stands in a block with text that could mislead."""
    warnings: dict[str, tuple[str, ...]] = {}
    for block in blocks:
        found = tuple(name for name, is_in in _SIGNS if is_in(block.text))
        for item in block.items if found else ():
            warnings[item] = (*warnings.get(item, ()), *found)
    return warnings


_SIGNS = (
    ("control-tokens", has_control_tokens),
    ("invisible-text", has_invisible_text),
    ("instruction-like", reads_like_orders),
)


def _place(candidate: Candidate, folders: Sequence[str]) -> tuple[str, str | None]:
    """Folder and path of the file it is, or of the one file its text is from; a text of several files has no path."""
    if candidate.file is not None:
        return candidate.file.folder, candidate.file.path
    if len(candidate.origins) == 1:
        for folder in folders:
            if candidate.origins[0].startswith(f"{folder}/"):
                return folder, candidate.origins[0].removeprefix(f"{folder}/")
    return "", None


def _cover(candidate: Candidate) -> tuple[int, int] | None:
    spans = candidate.forms[0].spans if candidate.file and candidate.forms else ()
    return (spans[0][0], spans[-1][1]) if spans else None


def _text_hash(text: str) -> str:
    """Of a short text without its secrets: who sees the hash could try passwords until it comes out."""
    text = without_secrets(text) if len(text) <= GUESSABLE else text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _classification(plan: Plan) -> dict[str, object]:
    return {
        "codebase": plan.codebase,
        "broad": plan.broad,
        "intent": plan.intent.value,
        "categories": list(plan.categories),
        "confidence": plan.confidence.value,
        "reason": plan.reason,
        "terms": list(plan.terms),
    }


def _plain(value: object) -> object:
    """What JSON cannot hold, one level of it: a dataclass as its fields by name."""
    names, values = _fields(type(value))
    return dict(zip(names, values(value), strict=True)) if names else str(value)


@cache
def _fields(kind: type) -> tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]:
    """Names of a dataclass's fields, and what takes their values out of one: all at once, as rows are many."""
    names = tuple(sorted(field.name for field in fields(kind))) if is_dataclass(kind) else ()
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: tuple(getattr(value, name) for name in names)
