"""The document in front of the user: its selection, which is a must, and the file around the cursor."""

from __future__ import annotations

from haversack import uris
from haversack.gatherers.naming import file_flags, origin, title
from haversack.gatherers.pointed import Pointed, file_forms, lines_candidate, refusal, unreadable
from haversack.places import Place
from haversack.types import ActiveDocument, Candidate, HaversackError, Kind, Plan, Reason, Source
from haversack.workspace import Workspace

# The user is looking at it, but did not name it.
ACTIVE_RELEVANCE = 0.9
# Documents a person edits; output panels, diffs and chat blocks are shown in editors too.
_EDITED_SCHEMES = frozenset({"file", "untitled", "vscode-notebook-cell"})


def point_at_active(active: ActiveDocument, plan: Plan, workspace: Workspace, found: Pointed) -> None:
    """Adds what is selected in the document, and the document."""
    place = active_place(active, workspace)
    if place is None:
        return
    refused = refusal(place, workspace)
    file = workspace.read(place.folder, place.path) if not refused else None
    if file is None:
        why = f"open in front of you, but {refused or unreadable(place, workspace)}"
        found.refuse(active.uri, Reason.UNREADABLE, why, place)
        return
    if not file.lines:
        return
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
    if origin(file) in found.whole_files:
        return
    found.add(
        Candidate(
            id=f"active:{origin(file)}",
            source=Source.MENTIONS,
            kind=Kind.FILE,
            title=title(file, workspace),
            relevance=ACTIVE_RELEVANCE,
            parts=(("active document", ACTIVE_RELEVANCE),),
            why="open in front of you",
            file=file,
            forms=file_forms(file, plan, workspace, focus),
            origins=(origin(file),),
            file_rank=0,
            flags=file_flags(file),
        )
    )


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
