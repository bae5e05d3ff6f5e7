"""Grammars and the limits of a parse."""

from __future__ import annotations

import time

import pytest
import tree_sitter

from haversack_index import parse
from haversack_index.languages import LANGUAGES
from haversack_index.parse import ParseFailure, load_grammar, parse_tree

GRAMMARS = sorted(row.grammar for row in LANGUAGES.values() if row.grammar)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_every_grammar_of_the_table_loads(grammar: str) -> None:
    """A language said to have a grammar has one in the pinned packages."""
    assert load_grammar(grammar) is not None


@pytest.mark.parametrize("grammar", ["cobol", "no-such-language", ""])
def test_unknown_and_dangerous_grammars_are_refused(grammar: str) -> None:
    """No grammar is a failure with a reason, and the one that hangs is never loaded."""
    with pytest.raises(ParseFailure, match="no grammar"):
        parse_tree(b"x", grammar)


@pytest.mark.parametrize(
    ("grammar", "data", "reason"),
    [
        ("javascript", b"(" * 20_000 + b"1" + b")" * 20_000, "too deep"),
        ("python", b"[" * 2_000 + b"]" * 2_000, "too deep"),
        ("python", b"x = " + b" + ".join([b"a"] * 3_000), "too deep"),
        ("rust", b"(" * 200_000, "too broken"),
        ("python", b"(" * 200_000, "too broken"),
        ("kotlin", b'"${' * 50_000, "too deep"),
        ("python", b"x = 1\n" * 200_000, "too large"),
    ],
)
def test_hostile_text_ends_in_a_reason(grammar: str, data: bytes, reason: str) -> None:
    """Deep, broken and large input is given up within a second or two on a busy machine."""
    started = time.thread_time()
    with pytest.raises(ParseFailure, match=reason):
        parse_tree(data, grammar)
    assert time.thread_time() - started < 1


def test_cut_off_try_block_parses() -> None:
    """A construct cut off in the middle neither hangs nor fails."""
    assert parse_tree(b"try { a() } catch { (, b", "javascript").root_node.has_error


def test_time_limit_holds() -> None:
    """A parse that would take longer than its time is cancelled."""
    with pytest.raises(ParseFailure, match="parse time"):
        parse_tree(b"def f(): pass\n" * 60_000, "python", time_limit_s=0.001)


def test_text_longer_than_one_read_parses_whole() -> None:
    """The read callback hands over all pieces."""
    tree = parse_tree(b"x = 1\n" * 30_000, "python")
    assert tree.root_node.end_byte == 180_000
    assert not tree.root_node.has_error


class _Broken:
    name = "broken"

    def load(self, grammar: str) -> tree_sitter.Language | None:
        raise OSError(f"cannot open the library of {grammar}")


def test_a_broken_provider_does_not_hide_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers are asked in order, and one that fails is passed over."""
    monkeypatch.setattr(parse, "PROVIDERS", (_Broken(), parse.LanguagePack()))
    parse._load.cache_clear()
    try:
        assert load_grammar("lua") is not None
    finally:
        parse._load.cache_clear()


def test_single_wheel_comes_before_the_pack() -> None:
    """An installed wheel of one language overrides the pack's grammar."""
    assert [provider.name for provider in parse.PROVIDERS] == [
        "single wheel",
        "language pack",
        "tree-sitter-languages",
    ]
    assert parse.SingleWheels().load("csharp") is not None
    assert parse.SingleWheels().load("fortran") is None


def test_missing_library_is_not_an_error() -> None:
    """The optional library says it has nothing when it is not installed, or gives a working grammar when it is."""
    language = parse.LanguagesLibrary().load("lua")
    assert language is None or isinstance(language, tree_sitter.Language)
