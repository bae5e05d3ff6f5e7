"""A recipe that is added, or that this process never heard of, moves no other recipe's hash."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from line_builders import WordCounter, make_candidate, make_file, make_marked, make_plan, make_route

from haversack import recipes
from haversack.assemble import assemble
from haversack.manifest import version_hash
from haversack.pack import PackConfig, pack
from haversack.recipes import RECIPES, Recipe, lookup
from haversack.score import score
from haversack.types import CompactTier, History, Kind, Prompt, Settings

# Of the prompts below. They move when the wording of prompts does, and must not when a recipe is added.
GOLDEN = {
    "chat": "703135a29f8a47314b6753b191fef33ded141a67902f15cb922ef4f7ada8e6cd",
    "edit": "78879d52b45197d3e0ba7a802712261b58f4cdf459fdb54c3a036c62b270fe13",
    "review": "e563d09e2859c5cca541693d1838b3d26b380878b07464969210e839e4ece2c9",
    "explain": "7069aaf40c9e831a7f54dedb2ca9c8e3ba9b5ef168351ca54af2663b51ff17ff",
}
# Every kind that there was before documents could be selected.
KINDS = [kind for kind in Kind if kind not in (Kind.DOCUMENT_IDENTITY, Kind.SECTION_SUMMARY, Kind.RULE)]


def prompt_of(recipe: str) -> Prompt:
    """A prompt with something of every kind, as the recipe lets it be."""
    files = [make_candidate(f"f:{kind}", make_file(f"src/{kind}.py", 6), kind=kind) for kind in KINDS]
    texts = [make_candidate(f"t:{kind}", kind=kind, text=f"what {kind} says\n" * 3) for kind in KINDS]
    plan, counter = make_plan(), WordCounter()
    scored = score([make_marked(each) for each in (*files, *texts)], plan)
    config = replace(PackConfig(), shares=lookup(recipe).shares)
    packed = pack(scored, plan, 700, counter, config=config)
    prompt, _ = assemble(packed, History((), CompactTier.NONE, 0, 0), plan, Settings(), counter)
    return prompt


def hash_of(recipe: str) -> str:
    return version_hash(prompt_of(recipe), make_route())


def digest_of(recipe: str) -> str:
    """Of the prompt's text alone: what else is in the hash is the same for every recipe."""
    text = "\0".join(message.content for message in prompt_of(recipe).messages)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_adding_the_document_recipe_moved_no_other(name: str) -> None:
    """The prompts are those of before it, byte for byte."""
    assert digest_of(name) == GOLDEN[name]


def test_a_recipe_that_is_added_moves_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one more recipe in the catalogue, all others give the same prompts."""
    before = {name: hash_of(name) for name in GOLDEN}
    extra = Recipe("extra", "For this test.", {Kind.CODE: 1.0, Kind.SECTION_SUMMARY: 0.5})
    monkeypatch.setattr(recipes, "RECIPES", {**RECIPES, extra.name: extra})
    assert lookup("extra") is extra
    assert {name: hash_of(name) for name in GOLDEN} == before
    assert hash_of("extra") not in before.values()


def test_recipes_differ() -> None:
    """The hashes above tell recipes apart: what a recipe does not have is not in its prompt."""
    assert len({hash_of(name) for name in GOLDEN}) == len(GOLDEN)
