"""What the user points at: files, folders, symbols and line ranges by name, and the document in front of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from haversack.gatherers.active import active_place, point_at_active
from haversack.gatherers.naming import file_flags, lines_id, origin, question_words, title
from haversack.gatherers.outline import VALUES, definition_forms, outline
from haversack.gatherers.pointed import Pointed, file_forms, lines_candidate, refusal, row_reason, unreadable
from haversack.mention_syntax import without_lines
from haversack.places import Place
from haversack.types import (
    Candidate,
    Detail,
    Form,
    HaversackError,
    Kind,
    Mention,
    MentionKind,
    Plan,
    Problem,
    Reason,
    Source,
)
from haversack.workspace import Workspace
from haversack_index.lexical import words
from haversack_index.rank import kind_share
from haversack_index.types import Query

# More names than a person types; each costs a look at the disk, and all of them share the source's deadline.
MOST_MENTIONS = 200
# Names looked up at once: one on a disk that hangs does not hold up the others, and other sources get threads too.
SIDE_BY_SIDE = 3
# The part of the deadline after which what was found so far is handed over, before the source counts as late.
PART_OF_DEADLINE = 0.9
# A folder is answered by its best files; more would push out everything else.
FOLDER_FILES = 20
FOLDER_FILE_SYMBOLS = 12
# Definitions of one mentioned name: beyond a handful the name says nothing.
SYMBOL_PLACES = 5


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    """What could be found in time, and a row for everything else that was named."""
    found = Pointed()
    named = [mention for mention in plan.mentions if mention.kind not in (MentionKind.DIFF, MentionKind.PROBLEMS)]
    looks = [_Look(mention.value, "you named it", partial(_mention, mention)) for mention in named[:MOST_MENTIONS]]
    active = plan.request.active
    if active is not None:
        looks.append(_Look(active.uri, "open in front of you", partial(point_at_active, active)))
    n_late = await _look(looks, plan, workspace, found)
    if n_late:
        message = f"{n_late} of the {len(looks)} things you point at were not reached in time."
        found.problem("mentions_late", message, "Raise haversack.gather.deadlineMs, or ask again.")
    for mention in named[MOST_MENTIONS:]:
        found.refuse(mention.value, Reason.FILE_CAP, f"you named it after {MOST_MENTIONS} others")
    if len(named) > MOST_MENTIONS:
        message = f"{len(named):,} names were mentioned; the first {MOST_MENTIONS} were looked up."
        found.problem("mentions_capped", message, "Mention a folder, or fewer files.")
    return tuple(found.candidates.values()), tuple(found.problems)


@dataclass(frozen=True, slots=True)
class _Look:
    """One thing to look up: what the user calls it, why, and how; `find` writes what it finds."""

    name: str
    why: str
    find: Callable[[Plan, Workspace, Pointed], None]


async def _look(looks: Sequence[_Look], plan: Plan, workspace: Workspace, found: Pointed) -> int:
    """Adds what each finds to `found`, in their order, and a row for each that took too long; returns how many did."""
    if not looks:
        return 0
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(look: _Look) -> Pointed:
        part = Pointed()  # its own: a call that comes back too late writes where nobody reads
        async with free:
            await workspace.run(look.find, plan, workspace, part)
        return part

    tasks = [asyncio.create_task(one(look)) for look in looks]
    deadline = dict(plan.sources).get(Source.MENTIONS)
    try:
        done, _ = await asyncio.wait(tasks, timeout=None if deadline is None else deadline * PART_OF_DEADLINE)
    finally:
        for task in tasks:
            task.cancel()
    for look, task in zip(looks, tasks, strict=True):
        if task in done:
            found.take(task.result())
        else:
            found.refuse(look.name, Reason.LATE, look.why)
    return len(tasks) - len(done)


def _mention(mention: Mention, plan: Plan, workspace: Workspace, found: Pointed) -> None:
    prefer = _active_folder(plan, workspace)
    try:
        for each in _readings(mention) if mention.value.strip() else ():
            if _as_place(each, prefer, plan, workspace, found) or _as_symbol(each, plan, workspace, found):
                return
    except HaversackError as error:
        found.problem(error.code, error.message, error.remedy)
        found.refuse(mention.value, Reason.OUTSIDE, "you named it")
        return
    if mention.from_text:
        found.problem("mention_ignored", f"@{mention.value} names no file, folder or symbol here; read as plain text.")
    else:
        remedy = _nearest(mention.value, plan, workspace)
        found.problem("mention_not_found", f"{mention.value!r} names no file, folder or symbol here.", remedy)
        found.refuse(mention.value, Reason.UNREADABLE, "you named it, and nothing here is called so")


def _readings(mention: Mention) -> Iterator[Mention]:
    """The mention as written; with a line range split off; in text, also without a tail that is the sentence's."""
    yield mention
    if mention.lines is None:
        value, lines = without_lines(mention.value)
        if lines is not None:
            yield replace(mention, value=value, lines=lines)
    if mention.from_text and not mention.value.isascii():
        value = next((mention.value[:i] for i, letter in enumerate(mention.value) if not letter.isascii()), "")
        if value:
            yield replace(mention, value=value)
    if mention.from_text and mention.value.endswith("'s"):
        yield replace(mention, value=mention.value[:-2])


def _as_place(mention: Mention, prefer: str, plan: Plan, workspace: Workspace, found: Pointed) -> bool:
    if mention.kind is MentionKind.SYMBOL:
        return False
    places = workspace.resolve(mention.value, prefer)
    if not places:
        places = _by_suffix(mention.value, prefer, plan, workspace)
    if mention.kind is MentionKind.FOLDER:
        places = tuple(place for place in places if place.is_folder)
    if mention.kind is MentionKind.PATH:
        places = tuple(place for place in places if not place.is_folder) or places
    if len(places) > 1:
        names = ", ".join(f"{place.folder}/{place.path}" for place in places)
        found.problem(
            "mention_ambiguous", f"{mention.value!r} names several files: {names}.", "Name one of them whole."
        )
    for place in places:
        if place.is_folder and place.path and (refused := refusal(place, workspace)):
            _refuse(place, mention, refused, workspace, found)
        elif place.is_folder:
            found.add(*_folder(place, plan, workspace, found))
        else:
            _file(place, mention, plan, workspace, found)
    return bool(places)


def _by_suffix(value: str, prefer: str, plan: Plan, workspace: Workspace) -> tuple[Place, ...]:
    """Indexed files whose path ends with all parts of `value`; of several, those of the preferred folder."""
    parts = PurePosixPath(value.replace("\\", "/")).parts
    if not parts or ("." not in parts[-1] and len(parts) == 1):
        return ()
    places = [
        Place(folder.key, path)
        for folder in workspace.folders_in_play(plan.request.folder)
        if folder.key in workspace.indexes
        for path in workspace.indexes[folder.key].paths_matching(value, 20)
        if PurePosixPath(path).parts[-len(parts) :] == parts
    ]
    preferred = [place for place in places if place.folder == prefer]
    # More than a handful of files of one name: the name does not tell which, so none is taken for required.
    return tuple((preferred or places)[:SYMBOL_PLACES])


def _file(place: Place, mention: Mention, plan: Plan, workspace: Workspace, found: Pointed) -> None:
    refused = refusal(place, workspace)
    file = workspace.read(place.folder, place.path) if not refused else None
    if file is None:
        _refuse(place, mention, refused or unreadable(place, workspace), workspace, found)
        return
    lines = mention.lines
    if lines is not None and lines[0] < len(file.lines):
        start, end = lines[0], min(lines[1], len(file.lines))
        why = f"you named lines {start + 1}-{end} of it"
        found.add(lines_candidate("mention", Kind.FILE, file, (start, end), why=why, workspace=workspace))
        return
    if lines is not None:
        message = f"{mention.value!r} has {len(file.lines)} lines; line {lines[0] + 1} is past its end."
        found.problem("mention_lines_past_end", message, "The whole file was taken.")
    found.whole_files.add(origin(file))
    found.add(
        Candidate(
            id=f"mention:{origin(file)}",
            source=Source.MENTIONS,
            kind=Kind.FILE,
            title=title(file, workspace),
            relevance=1.0,
            parts=(("mention", 1.0),),
            why="you named it",
            required=True,
            file=file,
            forms=file_forms(file, plan, workspace, None),
            origins=(origin(file),),
            file_rank=0,
            flags=file_flags(file),
        )
    )


def _refuse(place: Place, mention: Mention, reason: str, workspace: Workspace, found: Pointed) -> None:
    remedy = "Change the rule or the setting that leaves it out, or paste the part you need."
    found.problem("mention_unreadable", f"{mention.value!r} was not read: {reason}.", remedy)
    found.refuse(mention.value, row_reason(place, workspace), f"you named it, but {reason}", place)


def _folder(place: Place, plan: Plan, workspace: Workspace, found: Pointed) -> Iterator[Candidate]:
    prefix = f"{place.path}/" if place.path else ""
    index = workspace.indexes.get(place.folder)
    paths = [record.path for record in index.files() if record.path.startswith(prefix)] if index else []
    asked_words = question_words(plan)
    # All paths hold the folder's own words, so only what comes after tells them apart.
    near = {path: len(asked_words.intersection(words(path[len(prefix) :]))) for path in paths}
    paths.sort(key=lambda path: (-_share(path, plan), -near[path], path.count("/"), path))
    if len(paths) > FOLDER_FILES:
        found.problem(
            "folder_capped",
            f"{place.path or place.folder}/ holds {len(paths)} files; {FOLDER_FILES} close to the question were taken.",
            "Name a folder further down, or single files.",
        )
    if not paths:
        found.problem("folder_empty", f"{place.path or place.folder}/ holds no indexed file.")
    for rank, path in enumerate(paths[:FOLDER_FILES]):
        file = workspace.read(place.folder, path)
        if file is None or not file.lines:
            continue
        relevance = 1.0 - rank / (2 * FOLDER_FILES)
        lines = outline(workspace.symbols(place.folder, path), len(file.lines), asked_words, FOLDER_FILE_SYMBOLS)
        yield Candidate(
            id=f"folder:{origin(file)}",
            source=Source.MENTIONS,
            kind=Kind.OUTLINE,
            title=title(file, workspace),
            relevance=relevance,
            parts=(("folder mention", relevance),),
            why=f"in the folder you named, {place.path or place.folder}/",
            file=file,
            forms=(Form(Detail.OUTLINE, lines),),
            origins=(origin(file),),
            file_rank=rank,
            flags=file_flags(file),
        )


def _share(path: str, plan: Plan) -> float:
    """What the search leaves of a file's score: less for tests, examples and documents unless they are asked for."""
    return kind_share(path, Query("", tests_wanted=plan.tests_wanted, docs_wanted=plan.docs_wanted))[1]


def _as_symbol(mention: Mention, plan: Plan, workspace: Workspace, found: Pointed) -> bool:
    if mention.kind not in (None, MentionKind.SYMBOL) or "/" in mention.value:
        return False
    *containers, name = mention.value.removesuffix("()").replace("::", ".").replace("#", ".").split(".")
    places = [
        defined
        for folder in workspace.folders_in_play(plan.request.folder)
        for defined in workspace.definitions(folder.key, (name,))
        if name and (not containers or tuple(containers) == defined.symbol.container[-len(containers) :])
    ]
    # Of several things with one name: code before its tests, what can be called or made before fields and options.
    places.sort(key=lambda each: (-_share(each.file.path, plan), each.symbol.kind in VALUES))
    if len(places) > SYMBOL_PLACES:
        message = f"{mention.value!r} is defined in {len(places)} places; {SYMBOL_PLACES} were taken."
        found.problem("mention_ambiguous", message, "Name it with its class, or name the file.")
    for defined in places[:SYMBOL_PLACES]:
        file, symbol = defined.file, defined.symbol
        found.add(
            Candidate(
                id=lines_id("mention", file, symbol.span.start, symbol.span.end),
                source=Source.MENTIONS,
                kind=Kind.SYMBOL,
                title=f"{title(file, workspace)} {'.'.join((*symbol.container, symbol.name))}",
                relevance=1.0,
                parts=(("mention", 1.0),),
                why=f"defines {mention.value}, which you named",
                required=True,
                file=file,
                forms=definition_forms(
                    file.lines,
                    (symbol.span.start, symbol.span.end),
                    symbol.signature_end,
                    workspace.symbols(file.folder, file.path),
                    question_words(plan),
                ),
                heading=(*symbol.container, symbol.name),
                origins=(origin(file),),
                file_rank=0,
                flags=file_flags(file),
            )
        )
    return bool(places)


def _active_folder(plan: Plan, workspace: Workspace) -> str:
    if plan.request.active is None:
        return plan.request.folder
    place = active_place(plan.request.active, workspace)
    return place.folder if place is not None and place.folder else plan.request.folder


def _nearest(value: str, plan: Plan, workspace: Workspace) -> str:
    near = [
        path
        for folder in workspace.folders_in_play(plan.request.folder)
        if folder.key in workspace.indexes
        for path in workspace.indexes[folder.key].paths_matching(value, 3)
    ]
    return f"Did you mean {', '.join(near[:3])}?" if near else "Check the spelling, or search for a part of the name."
