"""Where candidates come from: one module per source, all of one shape."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from haversack.gatherers import diagnostics, diff, edits, hybrid, knowledge, mentions, rules_files, supplied, symbols
from haversack.types import Candidate, Plan, Problem, Source
from haversack.workspace import Workspace

Gatherer = Callable[[Plan, Workspace], Awaitable[tuple[tuple[Candidate, ...], tuple[Problem, ...]]]]

TABLE: Mapping[Source, Gatherer] = {
    Source.MENTIONS: mentions.gather,
    Source.SYMBOLS: symbols.gather,
    Source.HYBRID: hybrid.gather,
    Source.KNOWLEDGE: knowledge.gather,
    Source.EDITS: edits.gather,
    Source.DIAGNOSTICS: diagnostics.gather,
    Source.DIFF: diff.gather,
    Source.SUPPLIED: supplied.gather,
    Source.RULES: rules_files.gather,
}
