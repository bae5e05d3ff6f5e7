"""What a turn is about and what it asks of a model: paths for rules to match, and capabilities."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from haversack import uris
from haversack.types import (
    Capability,
    Effort,
    Kind,
    Marked,
    MentionKind,
    Plan,
    Request,
    Role,
    RoutingRule,
    Snapshot,
    Source,
)

# The right-hand side of a file's header in a git diff that another tool brings, quoted or not.
_DIFF_HEADER = re.compile(r'^diff --git (?:"?a/.*?"?) "?b/(?P<path>[^"\n]+)"?$', re.MULTILINE)
# Work at these efforts is worth nothing from a model that cannot think.
_THINKING = frozenset({Effort.HIGH, Effort.XHIGH})


def turn_paths(plan: Plan, marked: Sequence[Marked], snapshot: Snapshot) -> tuple[str, ...]:
    """Paths of what the user points at, relative to its folder, once each: mentions as found and as written, the active
    file, what other tools bring, and files in the diff. What search finds is no path of the turn: it is a guess."""
    found = (
        *_mentioned(plan, marked),
        *_active(plan.request, snapshot),
        *_supplied(plan.request, marked, snapshot),
        *_changed(marked, snapshot),
    )
    return tuple(dict.fromkeys(path for path in map(_normal, found) if path))


def needs(request: Request, effort: Effort, rule: RoutingRule | None) -> tuple[Capability, ...]:
    """All that the turn and the rule ask of a model, in the order of the enumeration."""
    wanted = {*request.needs, *(rule.requires if rule is not None else ())}
    if request.tools_tokens > 0 or any(message.role is Role.TOOL or message.tool_calls for message in request.history):
        wanted.add(Capability.TOOLS)
    if effort in _THINKING:
        wanted.add(Capability.REASONING)
    return tuple(each for each in Capability if each in wanted)


def _mentioned(plan: Plan, marked: Sequence[Marked]) -> Iterator[str]:
    for item in marked:
        file = item.candidate.file
        if item.candidate.source is Source.MENTIONS and file is not None and file.folder:
            yield file.path
    for mention in plan.mentions:
        if mention.kind in (MentionKind.PATH, MentionKind.FOLDER) or (
            mention.kind is None and ("/" in mention.value or "." in mention.value)
        ):
            yield mention.value.replace("\\", "/")


def _active(request: Request, snapshot: Snapshot) -> Iterator[str]:
    if request.active is None:
        return
    document = snapshot.documents.get(uris.canonical(request.active.uri))
    if document is not None and document.path is not None:
        yield document.path
        return
    path = uris.to_path(request.active.uri)
    for folder in snapshot.folders if path is not None else ():
        if path is not None and path.is_relative_to(folder.root):
            yield path.relative_to(PurePath(folder.root)).as_posix()
            return


def _supplied(request: Request, marked: Sequence[Marked], snapshot: Snapshot) -> Iterator[str]:
    for item in marked:
        if item.candidate.source is Source.SUPPLIED:
            yield from (inside_folder(origin, snapshot) for origin in item.candidate.origins)
    for supplied in request.supplied:
        if supplied.path:
            yield supplied.path.replace("\\", "/")
        if "diff --git " in supplied.text:
            yield from (header["path"] for header in _DIFF_HEADER.finditer(supplied.text))


def _changed(marked: Sequence[Marked], snapshot: Snapshot) -> Iterator[str]:
    for item in marked:
        if item.candidate.kind is Kind.DIFF:
            yield from (inside_folder(origin, snapshot) for origin in item.candidate.origins)


def inside_folder(origin: str, snapshot: Snapshot) -> str:
    """The path of a `folder/path` origin inside its folder. The longest key first: one may begin with another."""
    for folder in sorted(snapshot.folders, key=lambda each: -len(each.key)):
        if origin.startswith(f"{folder.key}/"):
            return origin[len(folder.key) + 1 :]
    return origin


def _normal(path: str) -> str:
    """The path without detours; "" for one that leads out of its folder, or is none."""
    plain = posixpath.normpath(path) if path and "\0" not in path else ""
    is_inside = plain not in ("", ".", "..") and not plain.startswith(("../", "/")) and not re.match(r"\w+:", plain)
    return plain if is_inside else ""
