"""Words, questions and the exact score."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexing import index, write_tree

from haversack_index import lexical
from haversack_index.database import Cursor, cursor_of, database_path
from haversack_index.lexical import Corpus, Document, cut, pack_terms, question_words, stem, unpack_terms, words
from haversack_index.reader import IndexReader
from haversack_index.store import Store
from haversack_index.types import Array, Query


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("parseHTTPResponse2", ("parsehttpresponse2", "pars", "http", "respons", "2")),
        ("get_settings", ("get_settings", "get", "set")),
        ("MAX_SIZE", ("max_size", "max", "siz")),
        ("x", ("x",)),
        ("naïveCafé", ("naïvecafé", "na", "ï", "ve", "caf", "é")),
        ("検索エンジン", ("検索", "索エ", "エン", "ンジ", "ジン")),
        ("a" * 200, ()),
    ],
)
def test_an_identifier_is_cut_into_itself_and_its_parts(identifier: str, expected: tuple[str, ...]) -> None:
    """CamelCase, snake_case, capitals, digits, scripts without blanks, and encoded data, which is left out."""
    assert cut(identifier) == expected


@pytest.mark.parametrize(
    "family",
    [
        ("parse", "parses", "parsed", "parsing"),
        ("cache", "caches", "cached", "caching"),
        ("query", "queries"),
        ("run", "runs", "running"),
        ("class", "classes"),
        ("embed", "embedded", "embedding", "embeds"),
        ("file", "files"),
        ("index", "indexed", "indexing"),
    ],
)
def test_inflections_of_a_word_meet(family: tuple[str, ...]) -> None:
    """A question in another form of a word finds it."""
    assert len({stem(word) for word in family}) == 1


def test_words_that_only_look_like_inflections_stay() -> None:
    """A string is not an inflected `str`."""
    assert [stem(word) for word in ("string", "status", "this", "speed")] == ["string", "status", "this", "speed"]


def test_stop_words_are_left_out_of_questions_only() -> None:
    """A question of nothing but stop words still asks for them; documents keep all of theirs."""
    assert question_words("how does the parser work?") == ("parser",)
    assert question_words("what is this?") == ("what", "is", "this")
    assert "is" in words("what is this")


def test_a_packed_word_list_counts_whole_words() -> None:
    """A word that is a part of another is not found in it."""
    packed = pack_terms({"cat": 2, "concat": 5, "cat_1": 7})
    counts = unpack_terms(packed)
    assert [counts.get(word, 0) for word in ("cat", "concat", "cat_1", "at", "ca")] == [2, 5, 7, 0, 0]


def scored(searched: list[str], documents: list[Document], corpus: Corpus) -> Array:
    return lexical.score(searched, documents, lexical.occurrences(searched, documents), corpus)


def test_the_corpus_decides_what_a_word_is_worth() -> None:
    """A word that all of the pool holds but few of the corpus still counts, and never against a chunk."""
    documents = [
        Document("a.py", "", "", pack_terms({"zebra": 1}), 10),
        Document("b.py", "", "", pack_terms({"get": 9}), 10),
    ]
    corpus = Corpus(1_000, 10.0, {"zebra": 2, "get": 900})
    rare, common = scored(["zebra", "get"], documents, corpus)
    assert rare > 2 * common > 0
    assert scored(["zebra"], [documents[0]] * 3, corpus).min() > 0


def test_no_words_and_no_documents_score_nothing() -> None:
    """The library divides by the number of documents; empty pools never reach it."""
    assert scored([], [], Corpus(0, 0.0, {})).shape == (0,)
    document = Document("a.py", "", "", "  ", 0)
    assert scored(["zebra"], [document], Corpus(1, 0.0, {})).tolist() == [0.0]


def test_a_word_in_the_name_outweighs_one_in_the_text() -> None:
    """What a chunk defines says more than what it mentions."""
    named = Document("a.py", "load_settings", "load_settings", pack_terms({"load": 1}), 20)
    mentions = Document("b.py", "other", "other", pack_terms({"load": 2}), 20)
    scores = scored(["load"], [named, mentions], Corpus(100, 20.0, {"load": 10}))
    assert scores[0] > scores[1]


QUESTION = "calls parse_uri() for file:///c%3A/x in C++ multi-agent mode"


@pytest.mark.parametrize(
    "text",
    [
        "what's parse_uri?",
        "multi-agent",
        "C++",
        "foo(bar)",
        "a:b",
        "NOT",
        "*",
        '"open',
        "",
        "AND OR NEAR(x, 2)",
        "x" * 100_000,
        "word " * 20_000,
        "\x00",
        "path : x ^ -y",
        "';DROP TABLE chunks;--",
        "\ud800",
    ],
)
def test_ordinary_questions_never_break_the_search(tmp_path: Path, text: str) -> None:
    """Bug B31: operators, quotes, brackets, nothing at all and 100 kB of text are questions like any other."""
    folder = write_tree(tmp_path / "w", {"notes.md": f"# Notes\n\n{QUESTION}\n"})
    index(folder, tmp_path / "c")
    reader = IndexReader(folder, tmp_path / "c")
    result = reader.search(Query(text, terms=(text,), identifiers=(text,), paths=(text,)))
    if text in ("what's parse_uri?", "multi-agent"):
        assert [file.path for file in result.files] == ["notes.md"]
    if text == "":
        assert result.files == ()
    reader.close()


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_legal_question(text: str) -> None:
    """Whatever the characters, the words cut from it make a legal match expression."""
    cursor = _words_table()
    searched = question_words(text)
    corpus = Corpus(1, 3.0, dict.fromkeys(searched, 1))
    assert isinstance(lexical.draw_pool(cursor, searched, corpus), list)


def test_rare_words_draw_the_pool(tmp_path: Path) -> None:
    """Common words beyond the posting budget are not even looked up, and the chunk with the rare one comes first."""
    store = Store(database_path(tmp_path, tmp_path / "c"))
    with store.batch() as cursor:
        for n in range(1, 301):
            cursor.execute(
                "INSERT INTO words(rowid, path, names, body) VALUES(?,'','',?)", (n, "get zebra" if n == 7 else "get")
            )
        corpus = Corpus(300, 1.0, {"get": 6_000, "zebra": 1})
        assert lexical.draw_pool(cursor, ["get", "zebra"], corpus) == [7]
    store.close()


def test_cutting_keeps_pace_with_parsing() -> None:
    """At least 2 MB a second even on a busy machine (8 and more on an idle one): parsing stays the slow part."""
    text = Path(lexical.__file__).read_text() * 20
    lexical.counted(text)
    start = time.process_time()
    lexical.counted(text)
    assert len(text) / 1e6 / (time.process_time() - start) > 2


def _words_table() -> Cursor:
    connection = apsw.Connection(":memory:")
    cursor = cursor_of(connection)
    columns = (
        "path, names, body, content='', contentless_delete=1, tokenize=\"unicode61 remove_diacritics 0 tokenchars '_'\""
    )
    cursor.execute(f"CREATE VIRTUAL TABLE words USING fts5({columns})")
    return cursor
