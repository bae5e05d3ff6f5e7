"""The gate: says of each candidate whether it is required and whether it may leave this machine.

The only maker of `Marked`, and only `Marked` goes further down the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from haversack import bugs, uris
from haversack.policy.documents import DocumentGate
from haversack.policy.privacy import UNNAMED_ORIGIN, Privacy
from haversack.types import Candidate, Kind, Marked, Message, Plan, Problem, Reason, Source

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
# Stands for the name of a tool that is sealed with the message: no service takes a call without a name.
WITHHELD_TOOL = "withheld"
# Kinds that are no text of one file; all the others quote files and must say which.
_ORIGINLESS = frozenset({Kind.ARCHITECTURE, Kind.MEMORY, Kind.TEAM, Kind.SUPPLIED})


def mark(
    candidates: Sequence[Candidate], plan: Plan, privacy: Privacy, gate: DocumentGate = OPEN
) -> tuple[Marked, ...]:
    """One `Marked` for each candidate, in the same order. Pure."""
    supplied = {item.id: item.required for item in plan.request.supplied}
    return tuple(_marked(candidate, supplied, privacy, gate) for candidate in candidates)


def _marked(candidate: Candidate, supplied: dict[str, bool], privacy: Privacy, gate: DocumentGate) -> Marked:
    restricted = _is_restricted(candidate, privacy)
    # What nobody asked for by name is no reason to refuse a remote model: it gets the prompt without.
    is_required = _is_required(candidate, supplied) and not (restricted and candidate.kind in _KEPT)
    return Marked(candidate, is_required, restricted, candidate.refused or _kept_back(candidate, gate))


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


def mark_history(messages: Sequence[Message], privacy: Privacy) -> tuple[tuple[Message, ...], tuple[Problem, ...]]:
    """The conversation as a remote model may read it: messages that quote a restricted file lose their text. Pure."""
    held = [any(privacy.restricts_origin(origin) for origin in message.origins) for message in messages]
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


def may_not_leave(messages: Sequence[Message], privacy: Privacy) -> frozenset[int]:
    """Places of messages that no model elsewhere may read to summarize them: all while the rules are closed."""
    return frozenset(
        at
        for at, message in enumerate(messages)
        if privacy.closed or any(privacy.restricts_origin(origin) for origin in message.origins)
    )


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
    # Text of unknown origin could be from anywhere.
    return candidate.file is None and not candidate.origins and candidate.kind not in _ORIGINLESS
