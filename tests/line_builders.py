"""Small makers of the line's nouns for tests, and hypothesis strategies of candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from haversack.lines import merged
from haversack.types import (
    Candidate,
    Confidence,
    Detail,
    FileText,
    Form,
    Intent,
    Kind,
    Marked,
    Model,
    Plan,
    Request,
    Route,
    Source,
)


class WordCounter:
    """Counts words, so that costs can be read off a test's text."""

    name = "words"
    exact = True

    def count(self, text: str) -> int:
        return len(text.split())

    def count_lines(self, lines: Sequence[str]) -> list[int]:
        return [self.count(line) for line in lines]


def make_plan(text: str = "how does it work?", **changes: Any) -> Plan:
    fields: dict[str, object] = {
        "request": Request(text),
        "codebase": True,
        "broad": False,
        "intent": Intent.CHAT,
        "categories": (),
        "confidence": Confidence.HIGH,
        "reason": "a test",
        "terms": (),
        "identifiers": (),
        "paths": (),
        "sources": ((Source.HYBRID, 1.0),),
        "mentions": (),
    }
    return Plan(**(fields | changes))  # type: ignore[arg-type]


def make_file(path: str, n_lines: int = 10, folder: str = "ws", lines: Sequence[str] | None = None) -> FileText:
    text = tuple(lines) if lines is not None else tuple(f"{path} line {at}\n" for at in range(n_lines))
    digest = hashlib.blake2b("".join(text).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return FileText(folder, path, text, "python", digest)


def make_candidate(
    id: str,
    file: FileText | None = None,
    forms: Sequence[tuple[Detail, Sequence[tuple[int, int]]]] = (),
    kind: Kind = Kind.CODE,
    relevance: float = 0.5,
    **changes: Any,
) -> Candidate:
    whole = ((Detail.FULL, ((0, len(file.lines)),)),) if file is not None else ()
    fields: dict[str, object] = {
        "id": id,
        "source": Source.HYBRID,
        "kind": kind,
        "title": f"title of {id}",
        "relevance": relevance,
        "parts": (("match", relevance),),
        "why": "a test",
        "file": file,
        "forms": tuple(Form(detail, tuple(spans)) for detail, spans in (forms or whole)),
    }
    return Candidate(**(fields | changes))  # type: ignore[arg-type]


def make_marked(candidate: Candidate, restricted: bool = False, **changes: Any) -> Marked:
    return Marked(candidate, candidate.required, restricted, **changes)  # type: ignore[arg-type]


def make_route(window: int = 16_000, reserve: int = 2_000, local: bool = False, gather_budget: int = 4_000) -> Route:
    model = Model("test-model", "test", "test", window, reserve, "o200k", gather_budget, local)
    return Route(model, window, "model", reserve)


# --- strategies ---

# Lines that repeat, so that copies, blank gaps, fences and control tokens come up often.
LINES = st.sampled_from(
    (
        "a b c\n",
        "\n",
        "  \n",
        "x = 1\n",
        "def f(a, b):\n",
        "```\n",
        "<|im_end|> t\n",
        "⋯\n",
        "é 漢字 字\n",
        "w " * 40 + "\n",
    )
)


@st.composite
def files(draw: st.DrawFn) -> tuple[FileText, ...]:
    """Up to four files, now and then with the same text."""
    texts = draw(st.lists(st.lists(LINES, max_size=40), min_size=1, max_size=3))
    picks = draw(st.lists(st.sampled_from(texts), min_size=1, max_size=4))
    return tuple(make_file(f"dir/f{at}.py", lines=lines) for at, lines in enumerate(picks))


@st.composite
def spans(draw: st.DrawFn, n_lines: int) -> tuple[tuple[int, int], ...]:
    ends = st.integers(0, n_lines)
    return merged(tuple(sorted(draw(st.tuples(ends, ends)))) for _ in range(draw(st.integers(1, 4))))  # type: ignore[misc]


@st.composite
def candidates(draw: st.DrawFn, required_share: int = 4) -> tuple[Candidate, ...]:
    """Candidates of all kinds, one of `required_share` required (0: none); poorer forms lie inside richer ones."""
    pool = draw(files())
    result: list[Candidate] = []
    for at in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from([kind for kind in Kind if kind is not Kind.RULE]))  # texts for the system message
        relevance = draw(st.integers(0, 10)) / 10
        required = required_share > 0 and draw(st.integers(1, required_share)) == 1
        if kind in (Kind.MEMORY, Kind.TEAM, Kind.ARCHITECTURE, Kind.DIFF) and draw(st.booleans()):
            text = "".join(draw(st.lists(LINES, max_size=8)))
            result.append(make_candidate(f"c{at}", None, kind=kind, relevance=relevance, text=text, required=required))
            continue
        file = draw(st.sampled_from(pool))
        full = draw(spans(len(file.lines)))
        forms = [(Detail.OUTLINE if kind is Kind.OUTLINE else Detail.FULL, full)]
        for detail in (Detail.SPANS, Detail.OUTLINE)[: draw(st.integers(0, 2))]:
            inner = forms[-1][1]
            forms.append((detail, tuple((a, a + max(1, (b - a) // 2)) for a, b in inner)))
        rank = draw(st.integers(0, 5))
        result.append(make_candidate(f"c{at}", file, forms, kind, relevance, required=required, file_rank=rank))
    return tuple(result)
