"""The messages of `protocol` that are about the choice of a model."""

from __future__ import annotations

import attrs


@attrs.frozen
class FailedModel:
    model: str
    reason: str


@attrs.frozen
class Skip:
    model: str
    code: str
    reason: str


@attrs.frozen
class Cost:
    low: str
    high: str
    limit: str


@attrs.frozen
class Route:
    model: str
    provider: str
    family: str
    local: bool
    assumed: bool
    window: int
    window_source: str
    reply_reserve: int
    max_output: int
    override_used: bool
    matched_rule: str
    fallback_used: bool
    task_type: str
    effort: str
    skipped: tuple[Skip, ...]
    degraded: tuple[str, ...]
    cost: Cost | None
    approvals: tuple[str, ...]
