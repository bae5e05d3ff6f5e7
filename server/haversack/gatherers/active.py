"""The document in front of the user: its selection, which is a must, and the file around the cursor."""

from __future__ import annotations

from collections.abc import Iterator

from haversack import uris
from haversack.gatherers.naming import file_flags, origin, title
from haversack.gatherers.pointed import ACTIVE, Pointed, file_forms, lines_candidate, refusal, row_reason, unreadable
from haversack.places import Place
from haversack.types import ActiveDocument, Candidate, FileText, HaversackError, Kind, Plan, Reason, Source
from haversack.workspace import Workspace

# The user is looking at it, but did not name it.
ACTIVE_RELEVANCE = 0.9
# One notebook is one text, of which the active cell is the place.
BESIDE_RELEVANCE = 0.8
# Documents a person edits; output panels, diffs and chat blocks are shown in editors too.
NOTEBOOK_CELL = "vscode-notebook-cell"
_EDITED_SCHEMES = frozenset({"file", "untitled", NOTEBOOK_CELL})


def point_at_active(active: ActiveDocument, plan: Plan, workspace: Workspace, found: Pointed) -> None:
    """Adds what is selected in the document, and the document."""
    place = active_place(active, workspace)
    if place is None:
        if uris.scheme_of(active.uri) == "file":
            found.refuse(active.uri, Reason.OUTSIDE, "open in front of you, but no file of the workspace")
        return
    refused = refusal(place, workspace)
    file = workspace.read(place.folder, place.path) if not refused else None
    if file is None:
        why = f"open in front of you, but {refused or unreadable(place, workspace)}"
        found.refuse(active.uri, row_reason(place, workspace), why, place)
        return
    if not file.lines:
        return
    for cell in _cells_beside(active, workspace):
        found.add(_whole(cell, plan, workspace, (BESIDE_RELEVANCE, "a cell of the same notebook"), None))
    last = len(file.lines)
    focus = min(active.position.line, last - 1) if active.position is not None else None
    selection = active.selection
    if selection is not None and selection.start != selection.end:
        # A selection that ends before the first character of a line does not reach into that line.
        reaches = selection.end.character > 0 or selection.end.line == selection.start.line
        end = selection.end.line + reaches
        start, end = min(selection.start.line, last - 1), min(max(end, selection.start.line + 1), last)
        focus = start
        why = "you selected it"
        found.add(lines_candidate("selection", Kind.SELECTION, file, (start, end), why=why, workspace=workspace))
    found.add(_whole(file, plan, workspace, (ACTIVE_RELEVANCE, "open in front of you"), focus))


def _whole(file: FileText, plan: Plan, workspace: Workspace, worth: tuple[float, str], focus: int | None) -> Candidate:
    relevance, why = worth
    return Candidate(
        id=f"{ACTIVE}{origin(file)}",
        source=Source.MENTIONS,
        kind=Kind.FILE,
        title=title(file, workspace),
        relevance=relevance,
        parts=(("active document", relevance),),
        why=why,
        file=file,
        forms=file_forms(file, plan, workspace, focus),
        origins=(origin(file),),
        file_rank=0,
        flags=file_flags(file),
    )


def _cells_beside(active: ActiveDocument, workspace: Workspace) -> Iterator[FileText]:
    """The other open cells of the notebook that the active document is a cell of; their URIs differ after the `#`."""
    if uris.scheme_of(active.uri) != NOTEBOOK_CELL:
        return
    here = uris.canonical(active.uri)
    notebook = here.partition("#")[0]
    for uri, document in list(workspace.snapshot.documents.items()):
        if uri != here and uri.partition("#")[0] == notebook:
            cell = workspace.read("", document.uri)
            if cell is not None and cell.lines:
                yield cell


def active_place(active: ActiveDocument, workspace: Workspace) -> Place | None:
    scheme = uris.scheme_of(active.uri)
    if scheme not in _EDITED_SCHEMES:
        return None
    document = workspace.document(active.uri)
    if document is not None:
        if document.folder is not None and document.path is not None:
            return Place(document.folder, document.path)
        return Place("", document.uri)
    try:
        return next((place for place in workspace.resolve(active.uri) if not place.is_folder), None)
    except HaversackError:
        return None
