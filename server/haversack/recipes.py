"""Recipes: which kinds of content a prompt may have, and how much of the room each may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from haversack.types import InvalidRequest, Kind


@dataclass(frozen=True, slots=True)
class Recipe:
    """A kind that is not in `shares` is absent from the prompt, not empty.

    A share is the part of the context budget that the kind may take while others still want room; 1 means no limit.
    """

    name: str
    description: str
    shares: Mapping[Kind, float]

    def has(self, kind: Kind) -> bool:
        return kind in self.shares


def lookup(name: str) -> Recipe:
    """The recipe called `name`. Raises InvalidRequest naming the ones there are."""
    recipe = RECIPES.get(name)
    if recipe is None:
        known = ", ".join(RECIPES)
        raise InvalidRequest(f"There is no recipe called {name[:80]!r}.", f"Choose one of: {known}.", known=[*RECIPES])
    return recipe


# Shares of chat. Code has no limit: it is what questions are about. The open file, when nobody asked for it by name,
# leaves half to what search found. The others are small by nature, and the limit only stops a freak (a thousand
# diagnostics, a diff of a whole branch) from crowding out the rest.
_CHAT: Mapping[Kind, float] = {
    Kind.SELECTION: 0.5,
    Kind.FILE: 0.5,
    Kind.SYMBOL: 1.0,
    Kind.CODE: 1.0,
    Kind.OUTLINE: 1.0,
    Kind.OVERVIEW: 0.2,
    Kind.EDIT: 0.15,
    Kind.DIAGNOSTIC: 0.12,
    Kind.DIFF: 0.2,
    Kind.ARCHITECTURE: 0.12,
    Kind.MEMORY: 0.08,
    Kind.TEAM: 0.05,
    Kind.SUPPLIED: 1.0,
    Kind.RULE: 1.0,
}


def _without(shares: Mapping[Kind, float], *kinds: Kind) -> dict[Kind, float]:
    return {kind: share for kind, share in shares.items() if kind not in kinds}


# The one recipe that is about a document that was chosen, not about whatever helps.
DOCUMENT = "document"

_ALL = (
    Recipe("chat", "Any question about the workspace.", _CHAT),
    # Who wrote it and how the project is laid out do not help to change a place that is already known.
    Recipe(
        "edit",
        "Change code: the places, what they use, recent edits and what is broken.",
        {**_without(_CHAT, Kind.TEAM, Kind.ARCHITECTURE, Kind.OVERVIEW), Kind.EDIT: 0.25, Kind.DIAGNOSTIC: 0.25},
    ),
    # The diff is the subject; code around it explains it.
    Recipe(
        "review",
        "Judge a change: the diff first, then the code around it and its owners.",
        {**_without(_CHAT, Kind.OVERVIEW), Kind.DIFF: 0.7},
    ),
    Recipe(
        "explain",
        "Understand code or the project: overview and layout count more, edits not at all.",
        {**_without(_CHAT, Kind.EDIT, Kind.DIAGNOSTIC, Kind.DIFF), Kind.OVERVIEW: 0.4, Kind.ARCHITECTURE: 0.25},
    ),
    # The card says what the sections are sections of; what one of the two leaves, the other may use.
    Recipe(
        DOCUMENT,
        "One document: what it is, and its sections in a few words each.",
        {Kind.DOCUMENT_IDENTITY: 0.1, Kind.SECTION_SUMMARY: 0.9},
    ),
)
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
