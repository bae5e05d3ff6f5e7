"""Which of the files at hand are restricted ones under another name: reached through a link, from a folder that lies in
another, or as a copy whose bytes are those of a restricted file that the index knows."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from haversack.places import relative_to
from haversack.policy.named import diffed, named
from haversack.policy.origins import forms
from haversack.policy.patterns import spell
from haversack.policy.privacy import Privacy
from haversack.types import Candidate, Folder, Message, Reason
from haversack.workspace import Workspace

# Bounds of what the disk is asked for one origin; longer names no disk has.
MOST_FORMS = 64
MOST_ENDINGS = 32
LONGEST = 4_096


def restricted_otherwise(
    candidates: Sequence[Candidate], history: Sequence[Message], workspace: Workspace
) -> frozenset[str]:
    """Origins among those of candidates and messages whose own name would not tell. Blocks: it looks at the disk."""
    snapshot = workspace.snapshot
    keys = tuple(folder.key for folder in snapshot.folders)
    privacy = Privacy.compile(snapshot.settings, keys, snapshot.policy)
    if privacy.closed or not privacy.active:
        return frozenset()
    found = {origin for origin in _origins(candidates, history) if not privacy.restricts_origin(origin)}
    by_place = [(origin, *place) for origin in found for place in _places(origin, workspace)]
    links = {
        origin
        for origin, folder, path in by_place
        if any(privacy.restricts(name) for name in workspace.names(folder, path))
    }
    now = _hashes(candidates)
    wanted = {(origin, digest) for origin, digest in now.items() if origin in found}
    for origin, folder, path in by_place:
        record = workspace.indexes[folder].file(path) if folder in workspace.indexes else None
        if origin not in now and record is not None:
            wanted.add((origin, record.content_hash))
    private = _restricted_texts(tuple({digest for _, digest in wanted if digest}), privacy, workspace)
    return frozenset(links | {origin for origin, digest in wanted if digest in private})


def kept_otherwise(
    candidates: Sequence[Candidate], history: Sequence[Message], workspace: Workspace
) -> dict[str, Reason]:
    """Origins that are links to documents which this reader may not have, with the reason. Blocks: as above."""
    gate = workspace.gate
    if not gate.active:
        return {}
    found: dict[str, Reason] = {}
    for origin in set(_origins(candidates, history)):
        places = _places(origin, workspace)
        reasons = (gate.reason(name) for place in places for name in workspace.names(*place))
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


def _origins(candidates: Sequence[Candidate], history: Sequence[Message]) -> Iterator[str]:
    """All that is said of where texts are from, also by headers of diffs and arguments of calls."""
    for message in history:
        yield from message.origins
    for paths in named(history):
        yield from paths
    for candidate in candidates:
        yield from candidate.origins
        if candidate.file is None:
            yield from diffed(candidate.text)


def _places(origin: str, workspace: Workspace) -> tuple[tuple[str, str], ...]:
    """Folder and path of each file that the origin may mean: its own reading, and those of the others that are there.

    As in `policy/origins.py`, but letter for letter, since disks tell `A` from `a`.
    """
    folders = sorted(workspace.snapshot.folders, key=lambda folder: -len(folder.key))
    found: dict[tuple[str, str], None] = {}
    for form in islice(forms(origin), MOST_FORMS):
        if "\0" in form or len(form) > LONGEST:
            continue
        path = posixpath.normpath(form)
        key = next((folder.key for folder in folders if spell(path).startswith(f"{spell(folder.key)}/")), None)
        if key is not None and not path.startswith("/"):
            found[key, path[len(key) + 1 :]] = None
            continue
        if path.startswith("/") and os.path.lexists(path):
            # From outside too a link may lead into a folder; joining an absolute path to a root gives the path itself.
            found |= dict.fromkeys(
                (folder.key, relative_to(path, folder.root) or path) for folder in workspace.snapshot.folders
            )
        bare = path.lstrip("/")
        endings = [bare, *(bare[at + 1 :] for at, letter in enumerate(bare) if letter == "/")]
        few = endings[:MOST_ENDINGS] if path.startswith("/") else endings[:2]
        found |= dict.fromkeys(
            (folder.key, ending) for folder in folders for ending in few if _is_there(folder, ending, workspace)
        )
    return tuple(found)


def _is_there(folder: Folder, path: str, workspace: Workspace) -> bool:
    if os.path.lexists(os.path.join(folder.root, path)):
        return True
    index = workspace.indexes.get(folder.key)
    return index is not None and index.file(path) is not None
