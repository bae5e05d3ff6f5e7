"""How candidates are called, so that the same thing has the same name in every source and on every run."""

from __future__ import annotations

from functools import lru_cache

from haversack.types import FileText, Plan
from haversack.workspace import Workspace
from haversack_index.lexical import words


def origin(file: FileText) -> str:
    return f"{file.folder}/{file.path}"


def title(file: FileText, workspace: Workspace) -> str:
    """The path, with its folder's name in front where there are several folders."""
    return origin(file) if file.folder and len(workspace.snapshot.folders) > 1 else file.path


def lines_id(prefix: str, file: FileText, start: int, end: int) -> str:
    return f"{prefix}:{origin(file)}:{start + 1}-{end}"


def question_words(plan: Plan) -> frozenset[str]:
    """The stems of the plan's search terms, to compare with text cut by `lexical.words`."""
    return _stems(plan.terms)


@lru_cache(maxsize=64)  # every source of a request asks, some once for each file
def _stems(terms: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for term in terms for word in words(term))


def file_flags(file: FileText, *, stale: bool = False) -> tuple[str, ...]:
    return (("unsaved",) if file.unsaved else ()) + (("stale-index",) if stale else ())
