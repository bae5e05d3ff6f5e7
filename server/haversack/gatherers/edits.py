"""What was typed and not saved yet: the edited places of open documents."""

from __future__ import annotations

from haversack.gatherers.naming import file_flags, lines_id, origin, title
from haversack.lines import merged
from haversack.types import Candidate, Detail, Document, Form, Kind, Plan, Problem, Source
from haversack.workspace import Workspace
from haversack_index.types import SkipReason

# Lines shown around an edit, and the longest piece of one document: edits are hints of what the user is at.
LINES_AROUND = 3
LONGEST = 60
MOST_DOCUMENTS = 8
# Each older document counts this much less.
STEP = 0.1
# Ignored and secret files are open in editors too; what is typed there goes nowhere.
_KEPT_BACK = frozenset({SkipReason.SECRET_NAME, SkipReason.HAVERSACK_IGNORED, SkipReason.GIT_IGNORED})


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    return await workspace.run(_edits, plan, workspace)


def _edits(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    folders = {folder.key for folder in workspace.folders_in_play(plan.request.folder)}
    newest = {uri: place for place, uri in enumerate(workspace.snapshot.recent)}
    documents = sorted(
        (each for each in workspace.snapshot.documents.values() if each.dirty and each.changed_lines),
        key=lambda document: (newest.get(document.uri, len(newest)), document.uri),
    )
    allowed = [document for document in documents if document.folder in folders and _may_show(document, workspace)]
    found = tuple(
        candidate
        for rank, document in enumerate(allowed[:MOST_DOCUMENTS])
        if (candidate := _candidate(document, rank, workspace)) is not None
    )
    n_left = len(allowed) - MOST_DOCUMENTS
    if n_left <= 0:
        return found, ()
    message = f"{n_left} more documents have unsaved edits; the {MOST_DOCUMENTS} edited last were taken."
    return found, (Problem(Source.EDITS.value, "edits_capped", message, "Save them, or name the file."),)


def _may_show(document: Document, workspace: Workspace) -> bool:
    if document.folder is None or document.path is None:
        return False
    verdict = workspace.verdict(document.folder, document.path)
    return verdict is None or verdict.reason not in _KEPT_BACK


def _candidate(document: Document, rank: int, workspace: Workspace) -> Candidate | None:
    file = workspace.read(document.folder or "", document.path or "")
    if file is None:
        return None
    spans: list[tuple[int, int]] = []
    taken = 0
    for start, end in document.changed_lines:
        around = (max(0, start - LINES_AROUND), min(len(file.lines), max(end, start + 1) + LINES_AROUND))
        size = around[1] - around[0]
        if size > 0 and (taken + size <= LONGEST or not spans):
            spans.append((around[0], min(around[1], around[0] + LONGEST)))
            taken += size
    places = merged(spans, len(file.lines))
    if not places:
        return None
    relevance = max(0.1, 0.8 - STEP * rank)
    return Candidate(
        id=lines_id("edit", file, places[0][0], places[-1][1]),
        source=Source.EDITS,
        kind=Kind.EDIT,
        title=title(file, workspace),
        relevance=relevance,
        parts=(("recent edit", relevance),),
        why="you edited it and have not saved it",
        file=file,
        forms=(Form(Detail.FULL, places),),
        origins=(origin(file),),
        file_rank=rank,
        flags=file_flags(file),
    )
