"""Recipes decide which kinds exist in a prompt."""

from __future__ import annotations

import pytest

from haversack.recipes import RECIPES, lookup
from haversack.types import InvalidRequest, Kind


@pytest.mark.parametrize("name", ["chat", "edit", "review", "explain"])
def test_known_recipes(name: str) -> None:
    """Each has the kinds that questions are about, with shares between 0 and 1."""
    recipe = lookup(name)
    assert recipe.name == name
    assert {Kind.SELECTION, Kind.FILE, Kind.CODE, Kind.SYMBOL, Kind.SUPPLIED} <= set(recipe.shares)
    assert all(0 < share <= 1 for share in recipe.shares.values())


def test_chat_has_every_kind_but_those_of_one_document() -> None:
    """The default leaves nothing out; parts of a document belong to its own recipe, which has nothing else."""
    parts = {Kind.DOCUMENT_IDENTITY, Kind.SECTION_SUMMARY}
    assert set(lookup("chat").shares) == set(Kind) - parts
    assert dict(lookup("document").shares) == {Kind.DOCUMENT_IDENTITY: 0.1, Kind.SECTION_SUMMARY: 0.9}


def test_membership_differs_by_recipe() -> None:
    """An edit has no team items and a review keeps the diff."""
    assert not lookup("edit").has(Kind.TEAM)
    assert not lookup("explain").has(Kind.DIFF)
    assert lookup("review").shares[Kind.DIFF] > lookup("chat").shares[Kind.DIFF]


@pytest.mark.parametrize("name", ["", "fim", "Chat", "x" * 10_000])
def test_unknown_recipes_name_the_known_ones(name: str) -> None:
    """The error says what can be chosen, and does not echo a long name."""
    with pytest.raises(InvalidRequest) as caught:
        lookup(name)
    assert all(known in caught.value.remedy for known in RECIPES)
    assert len(caught.value.message) < 200
