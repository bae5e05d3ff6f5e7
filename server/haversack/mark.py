"""The gate: says of each candidate whether it is required and whether it may leave this machine.

The only maker of `Marked`, and only `Marked` goes further down the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from haversack import bugs, uris
from haversack.policy.privacy import Privacy
from haversack.types import Candidate, Kind, Marked, Message, Plan, Problem, Source

# What these sources find is a guess at what may help; a guess is never worth an error for lack of room.
_GUESSES = frozenset({Source.HYBRID, Source.KNOWLEDGE, Source.EDITS})
# What stands for a message that a remote model may not read; calls keep their ids, so that results still pair up.
WITHHELD = "[left out: it quotes files that no remote model may read]"
# Kinds that are no text of one file; all the others quote files and must say which.
_ORIGINLESS = frozenset({Kind.ARCHITECTURE, Kind.MEMORY, Kind.TEAM, Kind.SUPPLIED})


def mark(candidates: Sequence[Candidate], plan: Plan, privacy: Privacy) -> tuple[Marked, ...]:
    """One `Marked` for each candidate, in the same order. Pure."""
    supplied = {item.id: item.required for item in plan.request.supplied}
    return tuple(
        Marked(candidate, _is_required(candidate, supplied), _is_restricted(candidate, privacy), candidate.refused)
        for candidate in candidates
    )


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


def _withheld(message: Message) -> Message:
    calls = tuple(replace(call, arguments="{}") for call in message.tool_calls)
    return replace(message, content=WITHHELD, tool_calls=calls)


def _is_required(candidate: Candidate, supplied: dict[str, bool]) -> bool:
    if candidate.source in _GUESSES and candidate.kind is not Kind.SELECTION:
        if candidate.required:
            bugs.report("a source that guesses calls its candidate required", candidate)
        return False
    return candidate.required or (candidate.source is Source.SUPPLIED and supplied.get(candidate.id, False))


def _is_restricted(candidate: Candidate, privacy: Privacy) -> bool:
    """By every file whose text is inside, whatever the candidate itself claims to be; by its owner's word besides."""
    if candidate.verdict is not None and candidate.verdict.restricted:
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
