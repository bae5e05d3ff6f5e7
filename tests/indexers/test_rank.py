"""The order of search results, from scored chunks alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from haversack_index.rank import ScoredChunk, Statistics, rank
from haversack_index.types import ChunkKind, Query, Span

RARITY = Statistics({"retry": 3.0, "timeout": 3.0, "client": 1.0}, mean_file_size=1_000.0)


def chunk(path: str, start: int = 0, *, keyword: float = 0.0, cosine: float | None = None, **more: Any) -> ScoredChunk:
    place = {
        "span": Span(path, start, start + 5),
        "kind": ChunkKind.DEFINITION,
        "heading": (),
        "signature_end": start + 1,
    }
    rest = {"names": (), "language": "python", "content_hash": "h", "file_size": 1_000}
    return ScoredChunk(**{**place, **rest, "keyword": keyword, "cosine": cosine, **more})


def order(*pool: ScoredChunk, query: Query | None = None, weight: float = 0.5) -> list[str]:
    return [file.path for file in rank(pool, query or Query("x"), weight, RARITY)]


def words(**counts: int) -> Mapping[str, int]:
    return counts


def test_words_of_a_file_count_together() -> None:
    """Two chunks that each hold one word of the question beat a file whose two chunks hold the same one."""
    both = (
        chunk("both.py", 0, keyword=1.0, counts=words(retry=1)),
        chunk("both.py", 9, keyword=1.0, counts=words(timeout=1)),
    )
    same = (chunk("a.py", 0, keyword=1.0, counts=words(retry=1)), chunk("a.py", 9, keyword=1.0, counts=words(retry=1)))
    assert order(*both, *same) == ["both.py", "a.py"]


def test_a_hit_by_meaning_alone_can_win() -> None:
    """A chunk that shares no word with the question comes first when its meaning is much nearer."""
    near = chunk("near.py", cosine=0.9)
    far = chunk("far.py", keyword=0.2, cosine=0.1, counts=words(client=1))
    other = chunk("other.py", keyword=1.0, cosine=0.0, counts=words(client=3))
    assert order(near, far, other, weight=0.8)[0] == "near.py"


def test_the_best_chunk_comes_first_in_its_file() -> None:
    """Hits of a file are in the order of their scores, whatever the order they came in."""
    (file,) = rank([chunk("a.py", 0, keyword=0.2), chunk("a.py", 9, keyword=1.0)], Query("x"))
    assert [hit.span.start for hit in file.hits] == [9, 0]
    assert file.hits[0].score > file.hits[1].score


def test_a_chunk_that_uses_a_name_the_question_writes_out_comes_before_a_somewhat_better_match() -> None:
    """An option is asked for by its name and stands in a text; a plain word is in every other chunk."""
    used = chunk("a.py", keyword=0.9, counts={"max_size": 1})
    other = chunk("b.py", keyword=1.0, counts={"size": 1})
    assert order(used, other, query=Query("where is max_size set", identifiers=("max_size",))) == ["a.py", "b.py"]
    plain = chunk("a.py", keyword=0.9, counts={"size": 1})
    assert order(plain, other, query=Query("where is `size` set", identifiers=("size",))) == ["b.py", "a.py"]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("tests/test_client.py", Query("x", tests_wanted=True)),
        ("src/client.spec.ts", Query("x", tests_wanted=True)),
        ("docs/client.md", Query("x", docs_wanted=True)),
        ("AUTHORS", Query("x", docs_wanted=True)),
        ("bench/client.csv", Query("x", docs_wanted=True)),
        ("patches/client.patch", Query("x", docs_wanted=True)),
        ("examples/client.py", Query("x", docs_wanted=True)),
        ("third_party/client.py", None),
    ],
)
def test_files_about_code_give_way_to_code_unless_they_are_wanted(path: str, wanted: Query | None) -> None:
    """A somewhat better match in a test, a document, an example or foreign code comes after the code itself."""
    code = chunk("src/client.py", keyword=0.7, counts=words(retry=1))
    about = chunk(path, keyword=1.0, counts=words(retry=2))
    assert order(code, about) == ["src/client.py", path]
    if wanted is not None:
        assert order(code, about, query=wanted) == [path, "src/client.py"]


def test_a_written_path_wins() -> None:
    """Who writes a file's path wants that file, even its test."""
    named = chunk("tests/test_a.py", keyword=0.1)
    better = chunk("src/b.py", keyword=1.0, counts=words(retry=2))
    assert order(named, better)[0] == "src/b.py"
    assert order(named, better, query=Query("x", paths=("test_a.py",)))[0] == "tests/test_a.py"


def test_a_written_name_lifts_the_chunk_that_defines_it() -> None:
    """`Client.send` in the question lifts the definition of `send` over a chunk that only mentions it more."""
    defines = chunk("a.py", keyword=0.8, names=("send",))
    mentions = chunk("b.py", keyword=1.0)
    assert order(defines, mentions) == ["b.py", "a.py"]
    assert order(defines, mentions, query=Query("x", identifiers=("Client.send",))) == ["a.py", "b.py"]


def test_scores_are_sums_of_named_parts() -> None:
    """What is printed adds up, for files and for hits."""
    pool = [
        chunk(
            "tests/a.py", keyword=1.0, cosine=0.3, counts=words(retry=1), name_match=1.0, path_match=0.5, stem_match=1.0
        ),
        chunk("b.py", keyword=0.4, cosine=0.9),
    ]
    for file in rank(pool, Query("x"), 0.5, RARITY):
        assert file.score == pytest.approx(sum(value for _, value in file.parts))
        for hit in file.hits:
            assert hit.score == pytest.approx(sum(value for _, value in hit.parts))


def test_ties_and_limits() -> None:
    """Equal files go by path; files and hits are as many as asked for."""
    pool = [chunk(path, start, keyword=1.0) for path in ("c.py", "a.py", "b.py") for start in (0, 9, 18)]
    files = rank(pool, Query("x", max_files=2, hits_per_file=2))
    assert [file.path for file in files] == ["a.py", "b.py"]
    assert [[hit.span.start for hit in file.hits] for file in files] == [[0, 9], [0, 9]]


def test_order_does_not_depend_on_the_order_of_the_pool() -> None:
    """Same pool, other order: the same result."""
    pool = [chunk(f"{n % 3}.py", n, keyword=n % 5, cosine=n % 7 / 7, counts=words(retry=n % 2)) for n in range(20)]
    assert rank(pool, Query("x"), 0.5, RARITY) == rank(pool[::-1], Query("x"), 0.5, RARITY)


@pytest.mark.parametrize(
    "better",
    [
        (chunk("b.py", keyword=0.5, name_match=1.0),),
        (chunk("b.py", keyword=0.5, path_match=1.0),),
        (chunk("b.py", keyword=0.5, stem_match=1.0),),
        (chunk("b.py", keyword=0.5), chunk("b.py", 9, keyword=0.4)),
        (chunk("b.py", keyword=0.5), chunk("b.py", 9, keyword=0.4), chunk("b.py", 18, keyword=0.4)),
    ],
    ids=["names", "path", "file name", "a further chunk", "two further chunks"],
)
def test_each_part_parts_equal_files(better: tuple[ScoredChunk, ...]) -> None:
    """Of two files whose best chunks are alike, the one with one thing more comes first, against the order of paths."""
    plain = chunk("a.py", keyword=0.5)
    one_further = chunk("a.py", 9, keyword=0.4)
    pool = [plain, *([one_further] if len(better) == 3 else []), *better]
    assert order(*pool) == ["b.py", "a.py"]


def test_the_nearest_chunk_lifts_its_file_apart_from_the_best_one() -> None:
    """A file whose best chunk is found by words gains from another that is near in meaning."""
    worded = (chunk("a.py", keyword=1.0, cosine=0.0), chunk("b.py", keyword=1.0, cosine=0.0))
    near = chunk("b.py", 9, keyword=0.0, cosine=0.5)
    far = chunk("a.py", 9, keyword=0.5, cosine=0.0)
    files = rank([*worded, near, far], Query("x"), 0.5, RARITY)
    assert dict(files[0].parts).get("meaning", 0.0) > 0
    assert files[0].path == "b.py"
