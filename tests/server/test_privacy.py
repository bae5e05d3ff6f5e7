"""Privacy patterns: gitignore-like, never loosened, closed when in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack.policy.patterns import compile_pattern
from haversack.policy.privacy import UNNAMED_ORIGIN, Privacy
from haversack.types import Settings


def privacy(*patterns: str, folders: tuple[str, ...] = ()) -> Privacy:
    return Privacy.compile(Settings(restricted_paths=patterns), folders)


@pytest.mark.parametrize(
    ("pattern", "path", "restricted"),
    [
        ("secrets/", "secrets/key.txt", True),
        ("secrets/", "app/secrets/deep/key.txt", True),
        ("secrets/", "secrets", False),
        ("secrets/", "secretsx/key.txt", False),
        ("secrets", "secrets", True),
        ("/secrets", "secrets/a.py", True),
        ("/secrets", "app/secrets/a.py", False),
        ("app/secrets", "app/secrets/a.py", True),
        ("app/secrets", "x/app/secrets/a.py", False),
        ("**/secrets", "x/app/secrets/a.py", True),
        ("app/**/key.py", "app/key.py", True),
        ("app/**/key.py", "app/a/b/key.py", True),
        ("app/**", "app/a.py", True),
        ("app/**", "app", False),
        ("*.pem", "certs/server.pem", True),
        ("*.pem", "server.pem.txt", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].py", "b.py", True),
        ("*", "anything/at/all", True),
        ("auth*.py", "src/authority.py", True),
    ],
)
def test_patterns_mean_what_they_mean_to_git(pattern: str, path: str, restricted: bool) -> None:
    """Names anywhere, anchored paths, folders and stars as in `.gitignore`."""
    assert privacy(pattern).restricts(path) is restricted


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("Secrets/", "SECRETS/key.txt"),
        ("secrets/", "./secrets//key.txt"),
        ("secrets/", "app/../secrets/key.txt"),
        ("/secrets", "/secrets/key.txt"),
        ("geh\u00e4lter.csv", "geha\u0308lter.csv"),
        ("stra\u00dfe/", "STRASSE/a"),
        ("  secrets/  ", "secrets/key.txt"),
    ],
)
def test_other_spellings_of_a_path_are_the_same_path(pattern: str, path: str) -> None:
    """Letter case, composed characters and dots name the same file on some disk, so they are restricted too."""
    assert privacy(pattern).restricts(path)


@pytest.mark.parametrize("pattern", ["[", "[z", "a\\", "x" * 5_000, "/", "///", "\ud800"])
def test_a_pattern_that_cannot_be_understood_closes_everything(pattern: str) -> None:
    """A typing error must not open what it was meant to close: everything is restricted, and a problem says so."""
    closed = privacy("fine/", pattern)
    assert closed.closed
    assert closed.active
    assert closed.restricts("README.md")
    assert closed.restricts_origin("folder/README.md")
    assert [problem.code for problem in closed.problems] == ["privacy_pattern_invalid"]
    assert len(closed.problems[0].message) < 300


def test_exceptions_are_refused() -> None:
    """`!` would loosen an earlier layer, so it has no effect, and a problem says so."""
    rules = privacy("secrets/", "!secrets/public.txt")
    assert rules.restricts("secrets/public.txt")
    assert not rules.restricts("README.md")
    assert [problem.code for problem in rules.problems] == ["privacy_pattern_ignored"]


def test_blanks_and_comments_are_nothing() -> None:
    """Empty lines and comments neither restrict nor close."""
    rules = privacy("", "   ", "# secrets/")
    assert not rules.active
    assert rules.problems == ()


def test_both_lists_count() -> None:
    """Paths blocked for remote use are restricted like the others."""
    rules = Privacy.compile(Settings(restricted_paths=("a/",), remote_blocked_paths=("b/",)))
    assert rules.restricts("a/x")
    assert rules.restricts("b/x")
    assert not rules.restricts("c/x")


def test_origins_are_read_with_their_folder() -> None:
    """The folder in front of an origin is not part of the path; without known folders both readings count."""
    known = privacy("/secrets", folders=("api", "api/v2"))
    assert known.restricts_origin("api/secrets/a")
    assert known.restricts_origin("api/v2/secrets/a")
    assert not known.restricts_origin("api/src/secrets/a")
    unknown = privacy("/secrets")
    assert unknown.restricts_origin("api/secrets/a")
    assert unknown.restricts_origin("secrets/a")


@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=30))
def test_any_pattern_and_path_give_an_answer(patterns: list[str], path: str) -> None:
    """Nothing raises, and more patterns never restrict less."""
    fewer, more = privacy(*patterns), privacy(*patterns, "*.key")
    assert more.restricts(path) >= fewer.restricts(path)
    assert more.restricts("x/y.key")


def test_an_origin_without_a_known_folder_loses_one_name_at_most() -> None:
    """Its first name may be a folder; what comes after is the path, whole. Text restricted before stays so."""
    rules = privacy("/secrets/deep")
    assert rules.restricts_origin("api/secrets/deep/key")
    assert not rules.restricts_origin("api/secrets/key")
    assert not rules.restricts_origin("api/v2/secrets/deep/key")
    assert not rules.restricts_origin("README.md")
    assert Privacy().restricts_origin(UNNAMED_ORIGIN)


def test_the_longest_folder_is_the_one_an_origin_is_in() -> None:
    """Not the one that comes last in the alphabet."""
    rules = privacy("/x/secrets", folders=("b", "b/x"))
    assert not rules.restricts_origin("b/x/secrets/a")
    assert rules.restricts_origin("b/x/x/secrets/a")


def test_what_stands_after_a_blank_or_an_exception_counts() -> None:
    """One line that says nothing does not end the list."""
    assert privacy("", "# note", "!open/", "secrets/").restricts("secrets/key")


@pytest.mark.parametrize(
    ("pattern", "head"),
    [("a/b/c.py", b"a/b"), ("/a/b/*/d", b"a/b"), ("a/*/c/d", b"a"), ("*/a/b", b""), ("/a", b""), ("name", b"")],
)
def test_a_rule_is_looked_for_under_the_directories_it_begins_with(pattern: str, head: bytes) -> None:
    """As far as they are written out; a longer one would hide the rule from paths that it matches."""
    compiled = compile_pattern(pattern)
    assert compiled is not None
    assert compiled.head == head


def test_a_path_that_is_no_text_still_has_an_answer() -> None:
    """Half of a surrogate pair comes from names that are not UTF-8."""
    assert privacy("secrets/").restricts("secrets/\ud800")
