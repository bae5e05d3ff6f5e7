"""Bytes to text and text to lines."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haversack_index.text import content_hash, decode, is_binary, split_lines

LINE_CASES = {
    "": [],
    "a": ["a"],
    "a\n": ["a\n"],
    "a\r\nb\rc\n": ["a\r\n", "b\r", "c\n"],
    "\n\r\n\r": ["\n", "\r\n", "\r"],
    "# part one\x0c end\nvalue = 1\n": ["# part one\x0c end\n", "value = 1\n"],
    's = "a\u2028b"\n\x0b\x85\n': ['s = "a\u2028b"\n', "\x0b\x85\n"],
}

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.mark.parametrize("text", LINE_CASES)
def test_only_the_three_line_ends_of_the_protocol_cut_lines(text: str) -> None:
    """Form feed, vertical tab, NEL and U+2028 stay inside a line."""
    assert split_lines(text) == LINE_CASES[text]


@given(st.text(st.sampled_from("ab\n\r\x0c\u2028 ")))
def test_lines_join_to_the_text(text: str) -> None:
    """Splitting loses nothing, and each line but the last has exactly one end."""
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith(("\n", "\r")) for line in lines[:-1])
    assert all(len(line.rstrip("\r\n")) >= len(line) - 2 for line in lines)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (codecs.BOM_UTF8 + b"# Title\n", ("# Title\n", "utf-8")),
        (codecs.BOM_UTF16_LE + "né".encode("utf-16-le"), ("né", "utf-16-le")),
        (codecs.BOM_UTF16_BE + "né".encode("utf-16-be"), ("né", "utf-16-be")),
        (codecs.BOM_UTF32_LE + "né".encode("utf-32-le"), ("né", "utf-32-le")),
        ("né\n".encode(), ("né\n", "utf-8")),
        (b"", ("", "utf-8")),
        (b"\x00text", None),
        (b"plain text\n" * 800 + b"\x00\x01", None),
        (PNG, None),
        (codecs.BOM_UTF16_LE + b"a", None),
    ],
)
def test_decoding_drops_marks_and_refuses_binary(data: bytes, expected: tuple[str, str] | None) -> None:
    """A byte order mark names the encoding and goes; a zero byte anywhere else means binary."""
    assert decode(data) == expected


def test_other_encodings_are_guessed() -> None:
    """A Latin-1 file is read as text of the right letters."""
    text = "La garçonnière était déjà fermée; le café aussi. Où êtes-vous allés après la fête?\n" * 5
    decoded = decode(text.encode("latin-1"))
    assert decoded is not None
    assert decoded[0] == text


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\x00text", True), (b"text" * 5000 + b"\0", True), (PNG, True), (b"text", False), ("é".encode("utf-16"), False)],
)
def test_binary_is_a_zero_byte_without_a_wide_mark(data: bytes, expected: bool) -> None:
    """UTF-16 with its mark is text though it is full of zero bytes."""
    assert is_binary(data) is expected


def test_hash_is_of_raw_bytes() -> None:
    """The hash sees the byte order mark that the text does not have."""
    assert len(content_hash(b"a")) == 32
    assert content_hash(codecs.BOM_UTF8 + b"a") != content_hash(b"a")
