"""The gate: says of each candidate whether it is required and whether it may leave this machine.

The only maker of `Marked`, and only `Marked` goes further down the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from haversack import bugs, uris
from haversack.policy.documents import DocumentGate
from haversack.policy.named import diffed, named, said
from haversack.policy.privacy import UNNAMED_ORIGIN, Privacy
from haversack.policy.quotes import Quotes
from haversack.types import Candidate, Kind, Marked, Message, Plan, Problem, Reason, Role, Source
from haversack_index.text import split_lines

# What these sources find is a guess at what may help; a guess is never worth an error for lack of room.
_GUESSES = frozenset({Source.HYBRID, Source.KNOWLEDGE, Source.EDITS})
# Not guesses, whatever source brings them: what the user chose, and the rules that the user keeps.
_CHOSEN = frozenset({Kind.SELECTION, Kind.MEMORY, Kind.RULE})
# Rules, in a memory or in a file.
_KEPT = frozenset({Kind.MEMORY, Kind.RULE})
# What stands for a message that a remote model may not read; calls keep their ids, so that results still pair up.
WITHHELD = "[left out: it quotes files that no remote model may read]"
WITHHELD_DOCUMENT = "[left out: it quotes documents that are kept from this prompt]"
OPEN = DocumentGate()
NO_QUOTES = Quotes()
# Stands for the name of a tool that is sealed with the message: no service takes a call without a name.
WITHHELD_TOOL = "withheld"
# Kinds that are no text of one file; all the others quote files and must say which.
_ORIGINLESS = frozenset({Kind.ARCHITECTURE, Kind.MEMORY, Kind.TEAM, Kind.SUPPLIED})


def mark(
    candidates: Sequence[Candidate], plan: Plan, privacy: Privacy, gate: DocumentGate = OPEN
) -> tuple[Marked, ...]:
    """One `Marked` for each candidate, in the same order. Pure."""
    supplied = {item.id: item.required for item in plan.request.supplied}
    unwanted = frozenset(plan.request.exclude)
    found = tuple(_marked(candidate, supplied, privacy, gate, unwanted) for candidate in candidates)
    quotes = quotes_of(found)
    return tuple(_restricted(item) if _takes_from(item, quotes) else item for item in found)


def _marked(
    candidate: Candidate, supplied: dict[str, bool], privacy: Privacy, gate: DocumentGate, unwanted: frozenset[str]
) -> Marked:
    is_required = _is_required(candidate, supplied)
    refused = candidate.refused or _kept_back(candidate, gate) or _left_out(candidate, unwanted)
    item = Marked(candidate, is_required, False, refused)
    return _restricted(item) if _is_restricted(candidate, privacy) else item


def _restricted(item: Marked) -> Marked:
    # What nobody asked for by name is no reason to refuse a remote model: it gets the prompt without.
    return replace(item, restricted=True, required=item.required and item.candidate.kind not in _KEPT)


def _takes_from(item: Marked, quotes: Quotes) -> bool:
    return not item.restricted and item.candidate.file is None and quotes.fill(item.candidate.text)


def quotes_of(marked: Sequence[Marked]) -> Quotes:
    """What only restricted files say, of all files in play: text without an origin is compared with it."""
    files = {
        (file.folder, file.path): (file.lines, item.restricted) for item in marked if (file := item.candidate.file)
    }
    texts = [split_lines(item.candidate.text) for item in marked if item.restricted and item.candidate.file is None]
    private = [lines for lines, restricted in files.values() if restricted]
    return Quotes.of((*private, *texts), (lines for lines, restricted in files.values() if not restricted))


def keep_documents(messages: Sequence[Message], gate: DocumentGate) -> tuple[tuple[Message, ...], tuple[Problem, ...]]:
    """The conversation as this reader may have it, with any model: quotes of documents kept from it are gone. Pure."""
    held = [any(gate.reason_of_origin(origin) is not None for origin in message.origins) for message in messages]
    if not any(held):
        return tuple(messages), ()
    problem = Problem(
        "mark",
        "history_withheld",
        f"{sum(held)} earlier messages quote documents that are kept from this prompt and were left out.",
    )
    pairs = zip(messages, held, strict=True)
    kept = tuple(_withheld(message, WITHHELD_DOCUMENT) if is_held else message for message, is_held in pairs)
    return kept, (problem,)


def mark_history(
    messages: Sequence[Message], privacy: Privacy, quotes: Quotes = NO_QUOTES
) -> tuple[tuple[Message, ...], tuple[Problem, ...]]:
    """The conversation as a remote model may read it: messages that quote a restricted file lose their text. Pure."""
    held = _quoting_restricted(messages, privacy, quotes)
    if not any(held):
        return tuple(messages), ()
    problem = Problem(
        "mark",
        "history_restricted",
        f"{sum(held)} earlier messages quote restricted files and were left out of the prompt for a remote model.",
        "Choose a local model to have them in.",
    )
    return tuple(_withheld(message) if is_held else message for message, is_held in zip(messages, held, strict=True)), (
        problem,
    )


def _quoting_restricted(messages: Sequence[Message], privacy: Privacy, quotes: Quotes) -> list[bool]:
    if not privacy.active:
        return [_quotes_restricted(message, message.origins, privacy, quotes) for message in messages]
    pairs = zip(messages, named(messages), strict=True)
    return [_quotes_restricted(message, (*message.origins, *paths), privacy, quotes) for message, paths in pairs]


def _quotes_restricted(message: Message, paths: Sequence[str], privacy: Privacy, quotes: Quotes) -> bool:
    """By the paths it names and by what it says. What a tool or a model says of unknown origin could quote anything."""
    if any(privacy.restricts_origin(path) for path in paths):
        return True
    if message.role is Role.SYSTEM:
        return False
    if privacy.closed and message.role is not Role.USER:
        return True
    return any(
        quotes.inside(text) for text in (message.content, *(text for call in message.tool_calls for text in said(call)))
    )


def may_not_leave(messages: Sequence[Message], privacy: Privacy, quotes: Quotes = NO_QUOTES) -> frozenset[int]:
    """Places of messages that no model elsewhere may read to summarize them: all while the rules are closed."""
    held = _quoting_restricted(messages, privacy, quotes)
    return frozenset(at for at, is_held in enumerate(held) if privacy.closed or is_held)


def _withheld(message: Message, notice: str = WITHHELD) -> Message:
    calls = tuple(replace(call, name=call.name or WITHHELD_TOOL, arguments="{}") for call in message.tool_calls)
    # Without its sealed part nobody is asked to open it.
    return replace(message, content=notice, tool_calls=calls, images=(), sealed=None)


def _is_required(candidate: Candidate, supplied: dict[str, bool]) -> bool:
    if candidate.source in _GUESSES and candidate.kind not in _CHOSEN:
        if candidate.required:
            bugs.report("a source that guesses calls its candidate required", candidate)
        return False
    return candidate.required or (candidate.source is Source.SUPPLIED and supplied.get(candidate.id, False))


def _kept_back(candidate: Candidate, gate: DocumentGate) -> tuple[Reason, ...]:
    """Why the reader may not have it, by every document whose text is inside."""
    if not gate.active:
        return ()
    own = (gate.reason(candidate.file.path),) if candidate.file is not None else ()
    reasons = (*own, *(gate.reason_of_origin(origin) for origin in candidate.origins))
    return tuple(dict.fromkeys(reason for reason in reasons if reason is not None))


def _left_out(candidate: Candidate, unwanted: frozenset[str]) -> tuple[Reason, ...]:
    """What the user left out of this question, by the id of its row or by its file."""
    file = candidate.file
    is_unwanted = candidate.id in unwanted or (file is not None and f"{file.folder}/{file.path}" in unwanted)
    return (Reason.UNWANTED,) if is_unwanted else ()


def _is_restricted(candidate: Candidate, privacy: Privacy) -> bool:
    """By every file whose text is inside, whatever the candidate itself claims to be; by its owner's word besides."""
    if candidate.verdict is not None and candidate.verdict.restricted:
        return True
    if UNNAMED_ORIGIN in candidate.origins:
        return True
    if not privacy.active:
        return False
    if privacy.closed:
        return True
    if candidate.file is not None and privacy.restricts(candidate.file.path):
        return True
    if candidate.file is not None and not candidate.file.folder and uris.scheme_of(candidate.file.path) != "untitled":
        return True  # a document outside every folder, or a cell of a notebook: no relative pattern could have named it
    if any(privacy.restricts_origin(origin) for origin in candidate.origins):
        return True
    if candidate.file is None and any(privacy.restricts_origin(path) for path in diffed(candidate.text)):
        return True
    # Text of unknown origin could be from anywhere.
    return candidate.file is None and not candidate.origins and candidate.kind not in _ORIGINLESS
