"""The text mirror against a plain model, and the cases that editors are known to send."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haversack.documents import MAX_CHANGED_RANGES, MAX_RECENT, Documents, Edit, Encoding
from haversack.types import Position, Range

URI = "file:///ws/a.py"


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Edit:
    return Edit(Range(Position(*start), Position(*end)), text)


def opened(text: str, encoding: Encoding = Encoding.UTF_16) -> Documents:
    documents = Documents(encoding)
    documents.open(URI, "python", text)
    return documents


def text_of(documents: Documents) -> str:
    document = documents.get(URI)
    assert document is not None
    return document.text


def changed(text: str, *edits: Edit, encoding: Encoding = Encoding.UTF_16) -> str:
    documents = opened(text, encoding)
    documents.change(URI, edits)
    return text_of(documents)


# --- the model: a list of encoded units and a scan for line ends, nothing clever ---------------------------------


def model_offset(text: str, position: Position, encoding: Encoding) -> int:
    """Index into `text` of a position, by walking the text one character at a time."""
    starts, contents, at = [0], [], 0
    while at < len(text):
        if text[at] in "\r\n":
            contents.append((starts[-1], at))
            at += 2 if text[at : at + 2] == "\r\n" else 1
            starts.append(at)
        else:
            at += 1
    contents.append((starts[-1], len(text)))
    if position.line >= len(contents):
        return len(text)
    begin, end = contents[position.line]
    left = position.character
    for index in range(begin, end):
        width = {
            Encoding.UTF_8: len(text[index].encode()),
            Encoding.UTF_16: 2 if ord(text[index]) > 0xFFFF else 1,
            Encoding.UTF_32: 1,
        }[encoding]
        if left < width:
            return index
        left -= width
    return end


def model_apply(text: str, one: Edit, encoding: Encoding) -> str:
    if one.range is None:
        return one.text
    start, end = sorted(model_offset(text, place, encoding) for place in (one.range.start, one.range.end))
    return text[:start] + one.text + text[end:]


ALPHABET = "ab \r\n\r\n\f\v\x85\u2028\u2029\ufeffé\u0301漢🦊👩\u200d👧"
texts = st.text(ALPHABET, max_size=30)
positions = st.builds(Position, st.integers(0, 8), st.integers(0, 12))
edits = st.one_of(
    st.builds(Edit, st.builds(Range, positions, positions), st.text(ALPHABET, max_size=6)),
    st.builds(Edit, st.none(), texts),
)


@settings(max_examples=150, deadline=None)
@given(texts, st.lists(edits, max_size=8), st.sampled_from(Encoding))
def test_edits_equal_the_model(text: str, changes: list[Edit], encoding: Encoding) -> None:
    """Any edits in any encoding leave exactly the text that a character-by-character model has."""
    documents = opened(text, encoding)
    for change in changes:
        documents.change(URI, [change])
        text = model_apply(text, change, encoding)
        assert text_of(documents) == text


def test_twenty_thousand_random_edits_equal_the_model() -> None:
    """A long random session in each encoding never drifts, and the remembered line ranges stay inside the text."""
    dice = random.Random(20_000)
    for encoding in Encoding:
        text = ""
        documents = opened(text, encoding)
        for _ in range(20_000 // 3):
            start = (dice.randrange(12), dice.randrange(10))
            end = (start[0] + dice.choice((0, 0, 0, 1, 2)), dice.randrange(10))
            inserted = "".join(dice.choices(ALPHABET, k=dice.choice((0, 1, 1, 2, 5))))
            change = edit(start, end, inserted)
            documents.change(URI, [change])
            text = model_apply(text, change, encoding)
            if len(text) > 120:
                documents.change(URI, [Edit(None, "")])
                text = ""
            document = documents.get(URI)
            assert document is not None
            assert document.text == text
            frozen = document.freeze(lambda _: None)
            lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
            assert all(0 <= low < high <= lines for low, high in frozen.changed_lines)


# --- cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["\f", "\v", "\x85", "\u2028", "\u2029", "\x1c"])
def test_b01_only_lsp_line_ends_count(odd: str) -> None:
    """Characters that Python takes for line ends do not shift later lines."""
    assert changed(f"# part one{odd} end\nvalue = 1\n", edit((1, 0), (1, 9), "value = 2")) == (
        f"# part one{odd} end\nvalue = 2\n"
    )


@pytest.mark.parametrize(("encoding", "column"), [(Encoding.UTF_8, 14), (Encoding.UTF_16, 12), (Encoding.UTF_32, 11)])
def test_b02_astral_character_before_the_cursor(encoding: Encoding, column: int) -> None:
    """The closing quote after an emoji is found in each encoding, with emojis on the lines above too."""
    for above in ("", "🦊🦊\n🦊🦊\n"):
        line = above.count("\n")
        text = above + 'msg = "🦊 ok"'
        documents = opened(text, encoding)
        assert documents.position(URI, Position(line, column)) == Position(line, 11)
        documents.change(URI, [edit((line, column), (line, column), "!")])
        assert text_of(documents) == above + 'msg = "🦊 ok!"'


def test_b04_columns_in_utf8() -> None:
    """A byte column after a two-byte letter inserts right behind it."""
    assert changed("né1", edit((0, 3), (0, 3), "x"), encoding=Encoding.UTF_8) == "néx1"


def test_b05_empty_document_and_end_of_file() -> None:
    """Edits at the end of an empty text, after the last line end, and across the last two lines."""
    assert changed("", edit((0, 0), (0, 0), "x")) == "x"
    assert changed("a\n", edit((1, 0), (1, 0), "b")) == "a\nb"
    assert changed("one\ntwo", edit((0, 3), (1, 3), "")) == "one"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_f2_column_past_the_line_end_is_the_line_end(end: str) -> None:
    """Also on a last line without a line end."""
    assert changed(f"abc{end}", edit((0, 99), (0, 99), "!")) == f"abc!{end}"


def test_f2_column_inside_a_character_is_its_start() -> None:
    """The middle of a surrogate pair or of a multi-byte character rounds down."""
    assert changed("a🦊b", edit((0, 2), (0, 2), "!")) == "a!🦊b"
    assert changed("a🦊b", edit((0, 3), (0, 3), "!"), encoding=Encoding.UTF_8) == "a!🦊b"


def test_reversed_ranges_and_lines_past_the_end() -> None:
    """A range that runs backwards is turned; lines that do not exist mean the end of the text."""
    assert changed("abc\ndef", edit((1, 1), (0, 1), "-")) == "a-ef"
    assert changed("abc\n", edit((7, 3), (9, 0), "x")) == "abc\nx"
    assert changed("abc", edit((7, 3), (9, 0), "x")) == "abcx"


def test_line_ends_that_meet_become_one() -> None:
    """`\\n` typed behind a lone `\\r` makes one line end, and later lines count accordingly."""
    assert changed("a\rb", edit((1, 0), (1, 0), "\n"), edit((1, 0), (1, 1), "c")) == "a\r\nc"


def test_lone_surrogates_keep_their_length() -> None:
    """Half a character cannot be sent on; a replacement of the same length takes its place."""
    assert changed("x", edit((0, 1), (0, 1), "\ud83d"), edit((0, 2), (0, 2), "y")) == "x\ufffdy"


def test_b09_documents_that_are_not_files() -> None:
    """Buffers without a file are open documents without folder and path."""
    documents = Documents()
    names = ["untitled:Untitled-1", "output:extension-output-x", "git:/ws/a.py?%7B%7D", "vscode-chat-code-block:/1"]
    for uri in names:
        documents.open(uri, "plaintext", "text")
    frozen = documents.freeze(lambda _: ("ws", "a.py"))
    assert [(each.uri, each.folder, each.path) for each in frozen.values()] == [(uri, None, None) for uri in names]


def test_b10_unsaved_text_wins_until_closed() -> None:
    """A change makes a document dirty, saving or undoing makes it clean, closing gives it back to the disk."""
    documents = opened("limit = 10\n")

    def dirty() -> bool:
        return documents.freeze(lambda _: None)[URI].dirty

    assert not dirty()
    documents.change(URI, [edit((0, 8), (0, 10), "99")])
    assert dirty()
    documents.change(URI, [edit((0, 8), (0, 10), "10")])
    assert not dirty()
    documents.change(URI, [edit((0, 8), (0, 10), "99")])
    documents.save(URI)
    assert not dirty()
    documents.open(URI, "python", "limit = 7\n")
    assert text_of(documents) == "limit = 7\n"
    documents.close(URI)
    assert documents.freeze(lambda _: None) == {}
    assert not documents.change(URI, [Edit(None, "late")])


def test_save_with_text_replaces_the_mirror() -> None:
    """What the client says it wrote is what the document holds."""
    documents = opened("a")
    documents.save(URI, "b")
    frozen = documents.freeze(lambda _: None)[URI]
    assert (frozen.text, frozen.dirty) == ("b", False)


def test_changed_lines_move_with_the_text() -> None:
    """The newest edit comes first; edits below an insertion move down; neighbours are merged; the list is capped."""
    documents = opened("".join(f"line {n}\n" for n in range(200)))
    documents.change(URI, [edit((50, 0), (50, 4), "LINE")])
    documents.change(URI, [edit((10, 0), (10, 0), "new\nnew\n")])
    assert documents.freeze(lambda _: None)[URI].changed_lines == ((10, 12), (52, 53))
    documents.change(URI, [edit((0, 0), (8, 0), "")])
    assert documents.freeze(lambda _: None)[URI].changed_lines[-1] == (44, 45)
    for line in range(0, 180, 4):
        documents.change(URI, [edit((line, 0), (line, 1), "x")])
    assert len(documents.freeze(lambda _: None)[URI].changed_lines) == MAX_CHANGED_RANGES


def test_recent_documents_newest_first() -> None:
    """Opening, changing and saving bring a document to the front; the list is capped."""
    documents = Documents()
    for number in range(MAX_RECENT + 5):
        documents.open(f"file:///ws/{number}.py", "python", "")
    documents.save("file:///ws/20.py")
    assert documents.recent()[:2] == ("file:///ws/20.py", f"file:///ws/{MAX_RECENT + 4}.py")
    assert len(documents.recent()) == MAX_RECENT


def test_frozen_documents_are_shared_until_something_changes() -> None:
    """An untouched document costs a snapshot nothing; a new folder for it makes a new copy."""
    documents = opened("a")

    def nowhere(_: Path) -> tuple[str, str] | None:
        return None

    first = documents.freeze(nowhere)[URI]
    assert documents.freeze(nowhere)[URI] is first
    assert documents.freeze(lambda _: ("ws", "a.py"))[URI].path == "a.py"


def test_typing_into_a_megabyte_is_fast() -> None:
    """A hundred key presses in a file of a megabyte take a fraction of a second, and so does a snapshot after each."""
    documents = opened("value = 'some text'  # é\n" * 40_000)
    start = time.perf_counter()
    for _ in range(100):
        documents.change(URI, [edit((20_000, 9), (20_000, 9), "x")])
    assert time.perf_counter() - start < 0.3
