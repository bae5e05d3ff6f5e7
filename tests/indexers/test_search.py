"""Search: the four tiers, how they fall through, unsaved text, and the order of results."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from indexing import HashEmbedder, index, module, write_tree

from haversack_index import count, lexical, search
from haversack_index.chunk import parse_file
from haversack_index.rank import ScoredChunk, Statistics, rank
from haversack_index.reader import IndexReader
from haversack_index.types import Array, FileHit, Query, SearchResult, Tier


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {f"src/topic{i}.py": module(f"topic{i}", 3) for i in range(20)}
    files |= {"src/zebra.py": module("zebra", 3), "tests/test_zebra.py": module("zebra", 3)}
    return write_tree(tmp_path / "w", {**files, "docs/guide.md": "# Zebra\n\nAll about the zebra.\n"})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "c"


def paths(result: SearchResult) -> list[str]:
    return [file.path for file in result.files]


def test_hybrid_sums_named_parts(folder: Path, cache: Path) -> None:
    """A score is the sum of its named parts, in files and in chunks."""
    embedder = HashEmbedder()
    index(folder, cache, embedder=embedder)
    reader = IndexReader(folder, cache, embedder)
    result = reader.search(Query("where is zebra carried to place 1?"))
    assert (result.tier, result.problems) == (Tier.HYBRID, ())
    assert result.files[0].path == "src/zebra.py"
    for file in result.files:
        assert file.score == pytest.approx(sum(value for _, value in file.parts))
        for hit in file.hits:
            assert hit.score == pytest.approx(sum(value for _, value in hit.parts))
    assert {"keyword", "vector"} <= {name for name, _ in result.files[0].hits[0].parts}
    reader.close()


class Broken(HashEmbedder):
    """An embedder whose service is away when the question comes."""

    def embed_query(self, text: str) -> Array:
        raise ConnectionRefusedError("connection refused")


def test_each_tier_falls_to_the_next_and_says_why(folder: Path, cache: Path) -> None:
    """No embedder, a broken one, vectors of another model, none at all, and no index: always an answer."""
    reader = IndexReader(folder, cache, HashEmbedder())
    counted = reader.search(Query("zebra"))
    assert (counted.tier, counted.files[0].path) == (Tier.COUNT, "src/zebra.py")
    assert "no index" in counted.problems[0]
    reader.close()
    index(folder, cache)
    for embedder, words in ((None, ""), (Broken(), "refused"), (HashEmbedder(name="x"), "not made yet")):
        reader = IndexReader(folder, cache, embedder)
        result = reader.search(Query("zebra"))
        assert (result.tier, result.files[0].path) == (Tier.KEYWORD, "src/zebra.py")
        assert bool(result.problems) == bool(words)
        assert all(words in problem for problem in result.problems)
        reader.close()
    index(folder, cache, embedder=HashEmbedder())
    reader = IndexReader(folder, cache, Broken())
    assert reader.search(Query("zebra")).tier is Tier.KEYWORD
    reader.close()


def test_counting_ends_in_time(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an index a search looks at a bounded number of files, and says so."""
    monkeypatch.setattr(count, "COUNT_FILES", 3)
    reader = IndexReader(folder, cache)
    result = reader.search(Query("topic1 zebra"))
    assert any("first 3 files" in problem for problem in result.problems)
    assert len(result.files) <= 3
    reader.close()


def test_a_counted_hit_shows_the_densest_lines(tmp_path: Path) -> None:
    """The lines around most of the words, not the top of the file."""
    text = "\n".join(["filler"] * 100 + ["the zebra crosses"] * 5 + ["filler"] * 100)
    folder = write_tree(tmp_path / "w", {"a.txt": text})
    hit = IndexReader(folder, tmp_path / "c").search(Query("zebra")).files[0].hits[0]
    assert hit.span.start <= 100 < hit.span.end <= 141


def test_an_unsaved_buffer_is_counted_at_its_own_lines(tmp_path: Path) -> None:
    """Without an index too, the buffer stands in for its file, blank lines and all."""
    folder = write_tree(tmp_path / "w", {"a.py": "zebra = 1\n"})
    reader = IndexReader(folder, tmp_path / "c")
    buffer = parse_file("a.py", "\n" * 100 + module("walrus"))
    hit = reader.search(Query("walrus", overlay=(buffer,))).files[0].hits[0]
    assert hit.span.start <= 100 < hit.span.end
    assert reader.search(Query("zebra", overlay=(buffer,))).files == ()


def test_counting_obeys_ignore_rules(tmp_path: Path) -> None:
    """The tier without an index goes through the same door as the indexer."""
    folder = write_tree(
        tmp_path / "w", {".haversackignore": "secret.py\n", "secret.py": "zebra", "a.py": "zebra = 1\n"}
    )
    assert paths(IndexReader(folder, tmp_path / "c").search(Query("zebra"))) == ["a.py"]


class Fixed(HashEmbedder):
    """Says that one file is what was meant, whatever the words."""

    def embed_documents(self, texts: list[str]) -> Array:
        return np.stack([self._point("topic7" in text) for text in texts])

    def embed_query(self, text: str) -> Array:
        return self._point(True)

    def _point(self, wanted: bool) -> Array:
        vector = np.zeros(self.dim, np.float32)
        vector[0 if wanted else 1] = 1.0
        return vector


def test_a_hit_by_meaning_alone_wins_a_place(folder: Path, cache: Path) -> None:
    """A chunk that shares no word with the question can come first."""
    embedder = Fixed()
    index(folder, cache, embedder=embedder)
    reader = IndexReader(folder, cache, embedder)
    found = paths(reader.search(Query("striped animals guide", vector_weight=0.7, text_weight=0.3)))
    assert found[0] == "src/topic7.py"
    by_words = reader.search(Query("striped animals guide", vector_weight=0.0, text_weight=1.0))
    assert paths(by_words)[0] == "docs/guide.md"
    reader.close()


def test_an_overlay_replaces_the_stale_file(folder: Path, cache: Path) -> None:
    """What stands in an unsaved buffer is found at its own lines; what was there before is not."""
    embedder = HashEmbedder()
    index(folder, cache, embedder=embedder)
    buffer = parse_file("src/zebra.py", "\n" * 10 + module("walrus"))
    for reader in (IndexReader(folder, cache, embedder), IndexReader(folder, cache)):
        found = reader.search(Query("walrus", overlay=(buffer,)))
        assert found.files[0].path == "src/zebra.py"
        assert found.files[0].hits[0].span.start == 10
        assert found.files[0].hits[0].content_hash == ""
        stale = [hit for file in reader.search(Query("zebra", overlay=(buffer,))).files for hit in file.hits]
        assert all(hit.content_hash == "" for hit in stale if hit.span.path == "src/zebra.py")
        assert all("zebra_step_0" not in hit.names for hit in stale if hit.span.path == "src/zebra.py")
        assert "zebra_step_0" in reader.search(Query("zebra")).files[0].hits[0].names
        reader.close()


def test_an_overlay_of_a_new_file_is_found(folder: Path, cache: Path) -> None:
    """A buffer that was never saved takes part like any file; an empty one takes nothing away but itself."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    fresh = parse_file("src/new.py", module("walrus"))
    assert paths(reader.search(Query("walrus", overlay=(fresh,)))) == ["src/new.py"]
    empty = parse_file("src/zebra.py", "")
    assert "src/zebra.py" not in paths(reader.search(Query("zebra", overlay=(empty,))))
    reader.close()


def test_tests_and_docs_stand_back_unless_wanted(folder: Path, cache: Path) -> None:
    """The same text in a test file comes second, with the reason as a negative part."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    plain = reader.search(Query("zebra_step_1"))
    assert paths(plain)[:2] == ["src/zebra.py", "tests/test_zebra.py"]
    assert dict(plain.files[1].parts)["test"] < 0
    wanted = reader.search(Query("zebra_step_1", tests_wanted=True))
    assert all(name != "test" for file in wanted.files for name, _ in file.parts)
    reader.close()


def test_written_names_and_paths_are_found_whatever_else_matches(folder: Path, cache: Path) -> None:
    """A question that writes out a name or a path gets its file into the pool, and on top."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    by_name = reader.search(Query("what does it do", identifiers=("topic9_step_2",)))
    assert by_name.files[0].path == "src/topic9.py"
    by_path = reader.search(Query("zebra", paths=("topic4.py",)))
    assert by_path.files[0].path == "src/topic4.py"
    reader.close()


def test_written_names_need_no_help_from_the_pool(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a question writes out takes part even when its words are too common to draw it."""
    index(folder, cache)
    monkeypatch.setattr(lexical, "draw_pool", lambda *_: [])
    reader = IndexReader(folder, cache)
    names = Query("carry", identifiers=("Elsewhere.topic9_step_2", "no_such_name"), paths=("topic4.py", "./", ""))
    assert set(paths(reader.search(names))) == {"src/topic9.py", "src/topic4.py"}
    reader.close()


def test_limits_of_the_query_hold(folder: Path, cache: Path) -> None:
    """At most so many files, and so many chunks of each."""
    index(folder, cache)
    reader = IndexReader(folder, cache)
    result = reader.search(Query("carry value place", max_files=4, hits_per_file=2))
    assert len(result.files) == 4
    assert max(len(file.hits) for file in result.files) <= 2
    reader.close()


def test_the_same_search_gives_the_same_answer(folder: Path, cache: Path) -> None:
    """Ties are broken by path and line, never by the order of rows."""
    embedder = HashEmbedder()
    index(folder, cache, embedder=embedder)
    first, second = IndexReader(folder, cache, embedder), IndexReader(folder, cache, embedder)
    query = Query("carry value place")
    assert first.search(query) == second.search(query) == first.search(query)
    first.close()
    second.close()


def test_many_threads_search_while_the_index_changes(folder: Path, cache: Path) -> None:
    """Each answer comes from one state of the index, whatever the writer does meanwhile."""
    embedder = HashEmbedder()
    index(folder, cache, embedder=embedder)
    reader = IndexReader(folder, cache, embedder)
    failures: list[BaseException] = []
    end = time.monotonic() + 1.5

    def look() -> None:
        try:
            while time.monotonic() < end:
                result = reader.search(Query("zebra"))
                assert result.tier is Tier.HYBRID
                assert "src/zebra.py" in paths(result)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    n = 0
    while time.monotonic() < end:
        n += 1
        write_tree(folder, {"src/zebra.py": module("zebra", 1 + n % 4), f"src/extra{n % 5}.py": module(f"extra{n}")})
        index(folder, cache, embedder=embedder)
    for thread in threads:
        thread.join()
    assert failures == []
    reader.close()


def test_a_half_built_index_says_so(folder: Path, cache: Path) -> None:
    """While the first pass runs, what is there answers with a note; when it holds nothing, words are counted."""
    write_tree(folder, {"src/zz.py": module("walrus")})
    calls = iter(range(100))
    index(folder, cache, stop=lambda: next(calls) >= 4)
    reader = IndexReader(folder, cache)
    some = reader.search(Query("zebra guide"))
    assert (some.tier, some.files[0].path) == (Tier.KEYWORD, "docs/guide.md")
    none = reader.search(Query("walrus"))
    assert (none.tier, none.files[0].path) == (Tier.COUNT, "src/zz.py")
    for result in (some, none):
        assert any("being built" in problem for problem in result.problems)
    index(folder, cache, paths=["src/zz.py"])
    assert reader.search(Query("walrus")).problems == ()
    assert len(reader.files()) == 24
    reader.close()


def test_chunks_kept_in_memory_follow_the_index(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that keeps chunks answers like a fresh one, also after a change, and when it may keep hardly any."""
    embedder = HashEmbedder()
    index(folder, cache, embedder=embedder)
    reader = IndexReader(folder, cache, embedder)
    questions = [Query("where is zebra carried to place 1?"), Query("topic3 topic7"), Query("zebra")]
    for limit in (1_000, 5):
        monkeypatch.setattr(search, "KEPT_CHUNKS", limit)
        for question in questions:
            fresh = IndexReader(folder, cache, embedder)
            assert reader.search(question) == fresh.search(question)
            fresh.close()
        write_tree(folder, {"src/zebra.py": f"# {limit}\n\n" + module("zebra", 2)})
        index(folder, cache, embedder=embedder)
        fresh = IndexReader(folder, cache, embedder)
        assert reader.search(questions[0]) == fresh.search(questions[0])
        fresh.close()
    reader.close()


def test_the_length_of_a_file_is_held_against_the_mean_of_the_index(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of results is told how long files are here, and again after the index has grown."""
    told: list[float] = []

    def listening(
        pool: Sequence[ScoredChunk], query: Query, weight: float, statistics: Statistics
    ) -> tuple[FileHit, ...]:
        told.append(statistics.mean_file_size)
        return rank(pool, query, weight, statistics)

    monkeypatch.setattr(search, "rank", listening)
    index(folder, cache)
    reader = IndexReader(folder, cache)
    for text in ("", "# a long file\n" * 500):
        if text:
            write_tree(folder, {"long.py": text})
            index(folder, cache)
        reader.search(Query("striped animals"))
        sizes = [file.size for file in reader.files()]
        assert told[-1] == pytest.approx(sum(sizes) / len(sizes))
