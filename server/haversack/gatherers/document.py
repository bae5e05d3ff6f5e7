"""One document that was chosen: the gate, then what it is, its sections, and where in it the question points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from haversack import uris
from haversack.gatherers import sections
from haversack.gatherers.naming import file_flags, origin, question_words
from haversack.gatherers.pointed import refusal, unreadable
from haversack.places import Place
from haversack.types import (
    Candidate,
    DocumentFocus,
    DocumentIdentity,
    DocumentSelection,
    FileText,
    HaversackError,
    InvalidRequest,
    Kind,
    Plan,
    Problem,
    Reason,
    Section,
    Source,
)
from haversack.workspace import Workspace
from haversack_index.lexical import words

# Sections in focus that a budget cannot drop. Each is bounded, so all of them are; a selection over more than this
# many points at the document, not at a place in it.
MOST_PINNED = 8


@dataclass(frozen=True, slots=True)
class Opened:
    """A document that passed the gate. `sections` are all that count, in its order; `distance` by order."""

    file: FileText
    identity: DocumentIdentity
    sections: tuple[Section, ...]
    pinned: frozenset[int]
    distance: tuple[int, ...]  # of each section to the focus; without a focus, its place
    focus: DocumentFocus | None
    problems: tuple[Problem, ...]
    capped: bool


def open_document(selection: DocumentSelection, folder: str, workspace: Workspace) -> Opened:
    """The gate decides first, by the document's names alone; only then is anything read.

    Raises HaversackError `document_not_found` (also for another tenant's), `document_privileged`,
    `document_strategy`, `document_unreadable`.
    """
    place = _admitted(selection, folder, workspace)
    file = workspace.read(place.folder, place.path)
    if file is None:
        raise _unreadable(selection.document, unreadable(place, workspace))
    settings, access = workspace.snapshot.settings, workspace.gate.access()
    index = workspace.indexes.get(place.folder)
    record = index.document(place.path, file.content_hash, access) if index is not None else None
    if index is not None and record is not None:
        symbols = index.sections(place.path, file.content_hash, access)
    else:
        symbols = workspace.parsed(place.folder, place.path).symbols  # changed or new: only its text knows
    limit = settings.section_summary_max_tokens
    found = sections.sections_of(file, symbols, limit)
    focus = selection.focus
    marked, problems = _focused(focus, found, file) if focus is not None else ((), ())
    distance = tuple(min(abs(each.order - at) for at in marked) if marked else each.order for each in found)
    identity = _identity(file, found, record.generation if record is not None else None, limit, workspace)
    near = sorted(found, key=lambda each: (distance[each.order], each.order))[: settings.max_sections]
    capped = len(near) < len(found)
    if capped:
        message = f"{len(found):,} sections; the {len(near):,} nearest were looked at."
        problems = (*problems, _problem("sections_capped", message, "Raise haversack.select.maxSections."))
    kept = tuple(replace(each, focus=each.order in marked) for each in sorted(near, key=lambda section: section.order))
    return Opened(file, identity, kept, frozenset(marked[:MOST_PINNED]), distance, focus, problems, capped)


def candidates(opened: Opened, plan: Plan) -> tuple[Candidate, ...]:
    """The identity card, which is pinned, and the sections, nearest to the focus first in worth."""
    file, path = opened.file, opened.file.path
    about = _card(opened.identity)
    card = _candidate(
        file, "identity", Kind.DOCUMENT_IDENTITY, title=path, text=about, worth=1.0, order=-1, required=True
    )
    asked = question_words(plan) if opened.focus is None else frozenset[str]()
    count = len(opened.distance) + 1
    found = [card]
    for section in opened.sections:
        worth = 1 - opened.distance[section.order] / count
        if asked:  # no place is pointed at: what speaks of the question comes first, then the order of the text
            speaks = len(asked.intersection(words(f"{' '.join(section.heading_path)} {section.summary}")))
            worth = round(speaks / len(asked), 6) + worth / (10 * count)
        name = " > ".join(section.heading_path) or section.kind
        mark = " (in focus)" if section.focus else ""
        title = f"{path}: {name}, lines {section.lines[0] + 1}-{section.lines[1]}{mark}"
        text = f"{section.summary or '(no text of its own)'}\n"
        required = section.order in opened.pinned
        ident = f"section:{section.id}"
        found.append(
            _candidate(
                file,
                ident,
                Kind.SECTION_SUMMARY,
                title=title,
                text=text,
                worth=worth,
                order=section.order,
                required=required,
            )
        )
    return tuple(found)


def candidate_id(file: FileText, name: str) -> str:
    return f"document:{origin(file)}:{name}"


def _admitted(selection: DocumentSelection, folder: str, workspace: Workspace) -> Place:
    if workspace.snapshot.policy.closed:
        raise HaversackError(
            "document_unjudged",
            "A policy file can't be read, so it is not known which documents may be selected.",
            "Correct the policy file; its diagnostics say what is wrong with it.",
        )
    places = [place for place in workspace.resolve(selection.document, folder) if not place.is_folder]
    if not places:
        raise HaversackError(
            "document_not_found",
            f"There is no document {selection.document[:200]!r} here.",
            "Give the URI of a document, or its path inside a workspace folder.",
        )
    if len(places) > 1:
        names = ", ".join(f"{place.folder}/{place.path}" for place in places)
        raise InvalidRequest(f"{selection.document[:200]!r} names several documents: {names}.", "Give its URI.")
    place = places[0]
    reason = workspace.withholds(place.folder, place.path)
    if reason is Reason.STRATEGY:
        raise HaversackError(
            "document_strategy",
            f"{place.path} is a strategy document: people may view it, agents do not get it.",
            'View it with `purpose: "view"`.',
        )
    if reason is not None:
        raise HaversackError(
            "document_privileged", f"{place.path} is a privileged document; nothing of it is put together."
        )
    refused = refusal(place, workspace)
    if refused:
        raise _unreadable(selection.document, refused)
    return place


def _unreadable(name: str, why: str) -> HaversackError:
    return HaversackError(
        "document_unreadable", f"{name[:200]!r} was not read: {why}.", "Change the rule that leaves it out."
    )


def _focused(
    focus: DocumentFocus, found: Sequence[Section], file: FileText
) -> tuple[tuple[int, ...], tuple[Problem, ...]]:
    """Orders of the sections that the focus points at, in the document's order, and what it names in vain."""
    marked: set[int] = set()
    problems: list[Problem] = []
    by_id = {section.id: section.order for section in found}
    for ident in focus.section_ids:
        if ident in by_id:
            marked.add(by_id[ident])
        else:
            message = f"There is no section {ident[:200]!r} in {file.path}."
            problems.append(_problem("section_not_found", message, "Select without a focus to see the ids."))
    rows = _rows(focus, len(file.lines))
    if focus.quote.strip():
        quoted = _quoted(focus.quote, rows, file)
        if quoted is None:
            where = "the range that was given" if rows is not None else file.path
            code = "quote_not_in_range" if rows is not None else "quote_not_found"
            message = f"The quoted words are not in {where}; nothing was marked for them."
            problems.append(_problem(code, message, "The text may have changed since they were selected."))
        rows = quoted
    if rows is not None:
        marked.update(sections.owners(found, *rows))
    return tuple(sorted(marked)), tuple(problems)


def _rows(focus: DocumentFocus, n_lines: int) -> tuple[int, int] | None:
    """The lines that the range touches; a cursor touches its own."""
    span = focus.range
    if span is None:
        return None
    reaches = span.end.character > 0 or span.end.line == span.start.line
    return min(span.start.line, n_lines), min(max(span.end.line + reaches, span.start.line + 1), n_lines)


def _quoted(quote: str, rows: tuple[int, int] | None, file: FileText) -> tuple[int, int] | None:
    """The lines of the first place where the quoted words stand, blanks and line ends counting as one blank."""
    start, end = rows if rows is not None else (0, len(file.lines))
    pattern = r"\s+".join(re.escape(word) for word in quote.split())
    text = "".join(file.lines[start:end])
    match = re.search(pattern, text)
    if match is None:
        return None
    first = start + text.count("\n", 0, match.start())
    return first, first + match[0].count("\n") + 1


def _identity(
    file: FileText, found: Sequence[Section], generation: int | None, limit: int, workspace: Workspace
) -> DocumentIdentity:
    address = file.path if not file.folder else ""
    opened = [
        each
        for each in workspace.snapshot.documents.values()
        if (each.folder, each.path) == (file.folder, file.path) or each.uri == uris.canonical(address)
    ]
    title, gist = _title_and_gist(file, found)
    return DocumentIdentity(
        folder=file.folder,
        path=file.path,
        title=sections.clipped(title, limit)[0] if title else None,
        kind=file.language or "text",
        status="unsaved" if file.unsaved else "open" if opened else "saved",
        generation=generation,
        n_lines=len(file.lines),
        n_characters=sum(map(len, file.lines)),
        gist=sections.clipped(gist, limit)[0] if gist else None,
    )


def _title_and_gist(file: FileText, found: Sequence[Section]) -> tuple[str, str]:
    """In the document's own words: its first heading and abstract, or what it says of itself as a module."""
    headings = [section for section in found if section.kind == "heading"]
    if headings:
        first = headings[0]
        end = headings[1].lines[0] if len(headings) > 1 else first.lines[1]
        inside = sections.paragraphs(file.lines[first.lines[0] + 1 : end])
        above = sections.paragraphs(file.lines[: first.lines[0]])
        return first.heading_path[-1], next((each for each in (*inside, *above) if _PROSE.match(each)), "")
    if [section.kind for section in found] == [sections.WHOLE]:
        return "", next(
            (each for each in sections.paragraphs(file.lines[: sections.MOST_LINES]) if _PROSE.match(each)), ""
        )
    said = sections.docstring(file.lines) if file.language == "python" else sections.comment_at(file.lines)
    if not said or _LICENSE.search(said):
        return "", ""
    return sections.first_sentence(said), " ".join(re.split(r"\n\s*\n", said, maxsplit=1)[0].split())


# An abstract begins with a word; lists, tables, badges, quotes and code do not say what a document is.
_PROSE = re.compile(r"[*_`\"'(\[]{0,3}\w(?!\. |\) )")
_LICENSE = re.compile(r"\b(?:copyright|license[ds]?|spdx|all rights reserved)\b", re.IGNORECASE)


def _card(identity: DocumentIdentity) -> str:
    status = identity.status if identity.generation is None else f"{identity.status}, indexed"
    rows = [
        ("Title", identity.title or ""),
        ("Path", identity.path),
        ("Kind", identity.kind),
        ("Status", status),
        ("Size", f"{identity.n_lines:,} lines, {identity.n_characters:,} characters"),
        ("Gist", identity.gist or "not known"),
    ]
    return "".join(f"{name}: {value}\n" for name, value in rows if value)


def _candidate(
    file: FileText, name: str, kind: Kind, *, title: str, text: str, worth: float, order: int, required: bool
) -> Candidate:
    return Candidate(
        id=candidate_id(file, name),
        source=Source.DOCUMENT,
        kind=kind,
        title=title,
        relevance=worth,
        parts=(("near", worth),),
        why="you point at it" if required and order >= 0 else "part of the document you selected",
        required=required,
        text=text,
        origins=(origin(file),),
        flags=file_flags(file),
        order=order,
    )


def _problem(code: str, message: str, remedy: str = "") -> Problem:
    return Problem(Source.DOCUMENT.value, code, message, remedy)
