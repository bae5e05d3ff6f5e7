"""Which of the files at hand are restricted ones under another name: reached through a link, from a folder that lies in
another, or as a copy whose bytes are those of a restricted file that the index knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from haversack.policy.patterns import spell
from haversack.policy.privacy import Privacy
from haversack.types import Candidate, Message, Reason
from haversack.workspace import Workspace


def restricted_otherwise(
    candidates: Sequence[Candidate], history: Sequence[Message], workspace: Workspace
) -> frozenset[str]:
    """Origins among those of candidates and messages whose own name would not tell. Blocks: it looks at the disk."""
    snapshot = workspace.snapshot
    keys = tuple(folder.key for folder in snapshot.folders)
    privacy = Privacy.compile(snapshot.settings, keys, snapshot.policy)
    if privacy.closed or not privacy.active:
        return frozenset()
    said = (origin for message in history for origin in message.origins)
    told = (origin for candidate in candidates for origin in candidate.origins)
    found = {origin for origin in (*told, *said) if not privacy.restricts_origin(origin)}
    by_place = {origin: place for origin in found if (place := _place(origin, workspace)) is not None}
    links = {
        origin
        for origin, (folder, path) in by_place.items()
        if any(privacy.restricts(name) for name in workspace.names(folder, path))
    }
    hashes = {
        origin: record.content_hash
        for origin, (folder, path) in by_place.items()
        if folder in workspace.indexes and (record := workspace.indexes[folder].file(path)) is not None
    } | _hashes(candidates)
    wanted = {origin: digest for origin, digest in hashes.items() if origin in found}
    private = _restricted_texts(tuple(dict.fromkeys(filter(None, wanted.values()))), privacy, workspace)
    return frozenset(links | {origin for origin, digest in wanted.items() if digest in private})


def kept_otherwise(
    candidates: Sequence[Candidate], history: Sequence[Message], workspace: Workspace
) -> dict[str, Reason]:
    """Origins that are links to documents which this reader may not have, with the reason. Blocks: as above."""
    gate = workspace.gate
    if not gate.active:
        return {}
    said = (origin for message in history for origin in message.origins)
    told = (origin for candidate in candidates for origin in candidate.origins)
    found: dict[str, Reason] = {}
    for origin in {*said, *told}:
        place = _place(origin, workspace)
        reasons = (gate.reason(name) for name in workspace.names(*place)) if place is not None else ()
        reason = next((each for each in reasons if each is not None), None)
        if reason is not None:
            found[origin] = reason
    return found


def _hashes(candidates: Iterable[Candidate]) -> dict[str, str]:
    """Of the text as it is now; "" for empty files, which are all alike and hold nothing."""
    files = (candidate.file for candidate in candidates if candidate.file is not None)
    return {
        f"{file.folder}/{file.path}": file.content_hash if any(map(str.strip, file.lines)) else "" for file in files
    }


def _restricted_texts(hashes: Sequence[str], privacy: Privacy, workspace: Workspace) -> set[str]:
    copies = (copy for index in workspace.indexes.values() for copy in (index.copies(hashes) if hashes else ()))
    return {digest for digest, path in copies if privacy.restricts(path)}


def _place(origin: str, workspace: Workspace) -> tuple[str, str] | None:
    folders = sorted(workspace.snapshot.folders, key=lambda folder: -len(folder.key))
    key = next((folder.key for folder in folders if spell(origin).startswith(f"{spell(folder.key)}/")), None)
    return None if key is None else (key, origin[len(key) + 1 :])
