"""Lines of other files for a cursor: signatures of what is imported or in sight, members of types, lines alike."""

from __future__ import annotations

import time
from collections.abc import Sequence

from haversack.fim.crossfile.choose import pieces_for
from haversack.fim.crossfile.library import WorkspaceLibrary
from haversack.fim.crossfile.pieces import Piece
from haversack.fim.nouns import Cursor, Found, Ring
from haversack.tokens import TokenCounter
from haversack.types import Candidate, Detail, FileText, Form, Kind, Source, Timing
from haversack.workspace import Workspace

__all__ = ["find"]

# Lines whose tokens are told from their length: counting each for real would cost more than finding them.
_CHARACTERS_A_TOKEN = 3.6


def find(cursor: Cursor, workspace: Workspace, ring: Ring | None, most_tokens: int, counter: TokenCounter) -> Found:
    """Candidates for the cursor that fill about `most_tokens`, best first, one for each file and way of finding.

    A document outside every folder gets none: nothing says which files go with it.
    """
    if most_tokens <= 0 or not cursor.file.folder:
        return Found()
    began = time.perf_counter()
    folder = cursor.file.folder
    settings = workspace.snapshot.settings
    known = ring.places() if ring is not None and settings.fim_recent else ()
    places = [place for place in known if place.folder == folder]
    library = WorkspaceLibrary(folder, workspace)
    pieces = pieces_for(
        cursor,
        places,
        library,
        most_tokens,
        _count,
        definitions=settings.fim_definitions,
        similar=settings.fim_similar,
    )
    grouped: dict[tuple[str, Source], list[Piece]] = {}
    for piece in pieces:
        edited = piece.is_signature is False and any(
            place.path == piece.path and place.lines[0] < piece.end and piece.start < place.lines[1] for place in places
        )
        source = Source.SYMBOLS if piece.is_signature else Source.EDITS if edited else Source.HYBRID
        grouped.setdefault((piece.path, source), []).append(piece)
    best = max((piece.score for piece in pieces), default=1.0) or 1.0
    candidates: list[Candidate] = []
    for rank, ((path, source), parts) in enumerate(grouped.items()):
        file = workspace.read(folder, path)
        if file is not None:
            candidates.append(_candidate(file, source, parts, best, rank))
    milliseconds = (time.perf_counter() - began) * 1_000
    timing = Timing("crossfile", "ok", milliseconds, n_candidates=len(candidates))
    return Found(tuple(candidates), timings=(timing,))


def _count(text: str) -> int:
    return max(1, round(len(text) / _CHARACTERS_A_TOKEN))


_KINDS = {Source.SYMBOLS: Kind.SYMBOL, Source.EDITS: Kind.EDIT, Source.HYBRID: Kind.CODE}


def _candidate(file: FileText, source: Source, pieces: Sequence[Piece], best: float, rank: int) -> Candidate:
    """One file's chosen lines; a second form has the better half of them, for when the room is less than it seemed."""
    first = pieces[0]
    forms = [Form(Detail.SPANS, _spans(pieces))]
    if len(pieces) > 1:
        forms.append(Form(Detail.OUTLINE, _spans(pieces[: len(pieces) // 2])))
    return Candidate(
        id=f"fim-{source.value}:{file.folder}/{file.path}",
        source=source,
        kind=_KINDS[source],
        title=file.path,
        relevance=min(1.0, max(0.0, first.score / best)),
        parts=first.parts,
        why=first.why,
        file=file,
        forms=tuple(forms),
        origins=(f"{file.folder}/{file.path}",),
        file_rank=rank,
        flags=("unsaved",) if file.unsaved else (),
    )


def _spans(pieces: Sequence[Piece]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((piece.start, piece.end) for piece in pieces):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
