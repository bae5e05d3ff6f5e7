"""Which document an address means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack import uris


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "file:///c%3A/My%20Proj/a.py",
            "file:///C:/My Proj/a.py",
            "file:///c:/My%20Proj/a.py",
            "FILE:///C%3a/My Proj/a.py",
        ),
        ("file:///w/a.py", "file://localhost/w/a.py", "file:/w/a.py", "file:///w/./b/../a.py", "file:///w//a.py"),
        ("file://Server/share/a.py", "file://server/share/a.py"),
        ("file:///w/caf%C3%A9.py", "file:///w/café.py"),
        ("file:///w/ws/", "file:///w/ws"),
        ("git:/ws/a.py?%7b%7d", "git:/ws/a.py?%7B%7D", "GIT:/ws/%61.py?%7B%7D"),
    ],
)
def test_b66_spellings_of_one_document(spellings: tuple[str, ...]) -> None:
    """Drive letters, percent-encoding, host and dots do not make another document."""
    assert len({uris.canonical(spelling) for spelling in spellings}) == 1


def test_different_documents_stay_different() -> None:
    """Case in paths, reserved characters of other schemes, and double encoding carry meaning."""
    names = [
        "file:///w/a.py",
        "file:///w/A.py",
        "file:///w/a%2520.py",
        "file:///w/a%20.py",
        "untitled:Untitled-1",
        "untitled:Untitled-2",
        "git:/w/a%2Fb",
        "git:/w/a/b",
    ]
    assert len({uris.canonical(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/100%25%23.py", "/w/100%#.py"),
        ("file:///w/a#b?c.py", "/w/a#b?c.py"),
        ("file:///w/%2e%2e/etc/passwd", "/etc/passwd"),
        ("file:///w/a%2520.py", "/w/a%20.py"),
    ],
)
def test_b66_decoded_once(uri: str, path: str) -> None:
    """Percent signs are decoded exactly once; `#` and `?` belong to the name."""
    assert uris.to_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        *("untitled:Untitled-1", "untitled:/w/new.py", "vscode-notebook-cell:/w/n.ipynb#W0", "git:/w/a.py?%7B%7D"),
        *("https://example.org/a.py", "/w/a.py", "a.py", "", "c:\\w\\a.py", "file:///w/a%00.py", "file"),
    ],
)
def test_f6_addresses_without_a_path(uri: str) -> None:
    """Other schemes, plain text and names with a zero byte have no path."""
    assert uris.to_path(uri) is None


def test_shares_keep_their_server() -> None:
    """A network share becomes a path with two slashes and goes back to the same URI."""
    path = uris.to_path("file://server/share/a%20b.py")
    assert path is not None
    assert str(path).startswith("//server/share/")
    assert uris.from_path(path) == "file://server/share/a%20b.py"


@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_round_trip_of_any_path(parts: list[str]) -> None:
    """Path to URI and back is the same path, and its URI is already canonical."""
    path = Path("/w", *(part for part in parts if part not in (".", "..")))
    uri = uris.from_path(path)
    assert uris.to_path(uri) == path
    assert uris.canonical(uri) == uri
