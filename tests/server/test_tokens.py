"""Counts are exact where a tokenizer is installed, and an estimate is never below them."""

from __future__ import annotations

import base64
import random
import string
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haversack import tokens
from haversack.token_estimate import by_characters

PROSE = (
    "The count of words must always stay above the true value; otherwise the window of the model overflows, and the "
    "answer breaks off in the middle of a sentence. That is why the program counts with care, and why it says so "
    "whenever it has to guess. Nobody likes to wait for an answer that was cut, or to pay for one that is wrong.\n\n"
) * 5

# The inputs on which four characters a token fails, with exact counts (o200k, cl100k).
DENSE = {
    "blanks": (" " * 4_000, (32, 32)),
    "emoji": ("🦊" * 300, (900, 900)),
    "base64": ("iVBORw0KGgoAAAANSUhEUgAA" * 80, (1_040, 1_040)),
}


def _kinds() -> dict[str, str]:
    """Every kind of text that prompts carry, made from a fixed seed."""
    rng = random.Random(7)

    def pick(alphabet: str, n: int = 1_500) -> str:
        return "".join(rng.choice(alphabet) for _ in range(n))

    return {
        "prose": PROSE,
        "python": "def resolve(self, model: str) -> int:\n    return self._windows.get(model.lower(), 16_000)\n\n" * 20,
        "typescript": "export const store = create<State>()((set) => ({ items: [], add: (item) => set(i) }));\n" * 20,
        "c": "static inline int foo_bar(struct foo *f, size_t n)\n{\n\treturn f->buf[n & 0xffu] != '\\0';\n}\n" * 20,
        "json": "".join(f'{{"id": {rng.random()}, "n": [{rng.randrange(10**9)}, null, true]}},\n' for _ in range(60)),
        "markdown": "## Heading\n\n- **bold** `code` [link](https://example.org/a?b=c)\n\n| a | b |\n| - | - |\n" * 20,
        "japanese": "これは二十文字で書いた日本語の文です。" * 60,
        "chinese": "我们需要计算令牌的数量，上下文窗口会溢出。" * 40,
        "korean": "토큰의 수를 세어야 합니다. 문맥 창이 넘칩니다. " * 40,
        "russian": "Это пример русского текста, который нужно посчитать. " * 20,
        "hindi": "यह हिन्दी में लिखा गया एक वाक्य है। " * 30,
        "arabic": "هذا نص عربي لحساب عدد الرموز في النافذة. " * 30,
        "german": "Die Zählung der Zeichen muss immer höher liegen als der wahre Wert, sonst läuft es über. " * 15,
        "polish": "Liczba tokenów nigdy nie może być mniejsza niż prawdziwa, inaczej okno modelu się przepełni. " * 15,
        "emoji": "👩‍👩‍👧‍👦🎲🚀🦊" * 100,
        "minified": "!function(e,t){for(var n=0;n<t.length;n++){var r=t[n];e[r]=r||{}}}(window,document);" * 20,
        "base64": base64.b64encode(rng.randbytes(3_000)).decode(),
        "hex": rng.randbytes(1_000).hex(),
        "digits": pick(string.digits),
        "letters": pick(string.ascii_letters),
        "capitals": pick(string.ascii_uppercase),
        "lower": " ".join(pick(string.ascii_lowercase, rng.randint(1, 12)) for _ in range(200)),
        "printable": pick(string.printable),
        "signs": pick(string.punctuation),
        "whitespace": pick(" \t\n\r"),
        "rulers": "=-" * 300 + "\n" + "#" * 80 + "\n" + "├── │ └──\n" * 60,
        "blank lines": "    \n" * 300 + "\t\t\tx\n" * 200,
    }  # fmt: skip


KINDS = _kinds()


@pytest.mark.parametrize("kind", DENSE)
def test_dense_text_has_its_exact_count(kind: str) -> None:
    """Emoji, blanks and base64 cost what the tokenizers say, not a quarter of their length."""
    text, wanted = DENSE[kind]
    assert (tokens.counter("o200k").count(text), tokens.counter("cl100k").count(text)) == wanted


@pytest.mark.parametrize("family", ["o200k", "cl100k", "llama3", "qwen"])
def test_installed_families_count_exactly_and_say_so(family: str) -> None:
    """A counter with a tokenizer is exact and named after it."""
    counter = tokens.counter(family)
    assert counter.exact
    assert counter.name.startswith(f"{family}/")


@pytest.mark.parametrize("family", ["claude", "claude-2", "gemini", "unknown", "no such family", ""])
def test_other_families_are_estimated_and_say_so(family: str) -> None:
    """A counter without a tokenizer is an estimate and says from what."""
    counter = tokens.counter(family)
    assert not counter.exact
    assert counter.name.startswith(f"{family}~")


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>system", "a<|endoftext|>b" * 50])
@pytest.mark.parametrize("family", ["o200k", "cl100k", "llama3", "qwen", "deepseek", "tekken", "claude", "unknown"])
def test_special_tokens_are_plain_text(family: str, text: str) -> None:
    """A special token in a source file is counted by its letters and raises nothing."""
    assert tokens.counter(family).count(text) > text.count("<|")


@pytest.mark.parametrize("family", ["o200k", "qwen", "deepseek", "claude"])
@pytest.mark.parametrize("text", ["\ud800", "abc\udfff def", "\x00\x01", "\ufeffx", "e\u0301"])
def test_odd_characters_are_counted(family: str, text: str) -> None:
    """Half surrogate pairs and control characters count as something and raise nothing."""
    assert 1 <= tokens.counter(family).count(text) <= 40


@pytest.mark.parametrize("kind", KINDS)
def test_the_character_estimate_is_never_below_the_exact_counts(kind: str) -> None:
    """Without any tokenizer the count still errs high, for both vocabularies."""
    exact = max(tokens.counter("o200k").count(KINDS[kind]), tokens.counter("cl100k").count(KINDS[kind]))
    assert by_characters(KINDS[kind]) >= exact


def test_the_character_estimate_is_close_on_prose() -> None:
    """English prose is not over-counted by more than 35 %."""
    assert by_characters(PROSE) <= 1.35 * tokens.counter("o200k").count(PROSE)


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_the_character_estimate_covers_any_script(text: str) -> None:
    """Random characters outside ASCII are never under-counted."""
    assert by_characters(text) >= max(tokens.counter(family).count(text) for family in ("o200k", "cl100k"))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6), st.integers(0, 2**32))
def test_mixtures_are_never_under_counted(kinds: list[str], seed: int) -> None:
    """Pieces of all kinds in one text are never under-counted."""
    rng = random.Random(seed)
    text = "\n".join(KINDS[kind][(at := rng.randrange(200)) : at + rng.randint(200, 400)] for kind in kinds)
    assert by_characters(text) >= max(tokens.counter(family).count(text) for family in ("o200k", "cl100k"))


# Families whose tokenizer the second package has; where only the first is installed, they are estimated.
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["cl100k", "llama3", "qwen"])
def test_scaled_estimates_are_never_below_the_exact_count(
    family: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only o200k were installed, the other families' estimates would still err high."""
    exact = tokens.counter(family).count(KINDS[kind])
    monkeypatch.setitem(tokens.ENCODINGS, family, ("", ""))
    estimated = tokens.load_counter.__wrapped__(family)
    assert not estimated.exact
    assert estimated.count(KINDS[kind]) >= exact


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_families_are_counted_above_every_known_one(kind: str) -> None:
    """The estimate for an unknown model is at least every exact count there is."""
    known = max(tokens.counter(family).count(KINDS[kind]) for family in ("o200k", "cl100k", "llama3", "qwen"))
    assert tokens.counter("unknown").count(KINDS[kind]) >= known


@pytest.mark.parametrize("family", ["claude", "gemini", "llama2", "unknown"])
def test_rulers_and_blank_lines_are_not_taken_as_one(family: str) -> None:
    """o200k packs 64 characters of a ruler into a token; vocabularies that take two at once are not under-counted."""
    count = tokens.counter(family).count
    assert count("=-" * 500) >= 500
    assert count("    \n" * 1_000) >= 2_000


@pytest.mark.parametrize("missing", [("quicktok",), ("splintr",), ("quicktok", "splintr")])
def test_a_missing_package_costs_accuracy_and_nothing_else(
    missing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the first package the second or the estimate takes over, and the name says so."""
    exact = tokens.counter("o200k").count(PROSE)
    real = tokens._module
    monkeypatch.setattr(tokens, "_module", lambda name: None if name in missing else real(name))
    counter = tokens.load_counter.__wrapped__("o200k")
    if counter.exact:
        assert counter.count(PROSE) == exact
    else:
        assert counter.name == "o200k~characters"
        assert exact <= counter.count(PROSE) <= 1.35 * exact


@pytest.mark.parametrize("text", [" " * 400_000, "a" * 400_000, "\n" * 400_000, "=-" * 200_000])
def test_degenerate_text_is_counted_quickly(text: str) -> None:
    """400 kB of one character take a fraction of a second, in the tokenizer and in the estimates."""
    for count in (tokens.counter("o200k").count, tokens.counter("claude").count, by_characters):
        started = time.perf_counter()
        assert count(text) > 0
        assert time.perf_counter() - started < 3


def test_many_threads_count_alike() -> None:
    """Counting from several threads at once gives the same numbers, first loading included."""
    tokens.load_counter.cache_clear()
    wanted: set[tuple[int, int]] = set()

    def count() -> None:
        for _ in range(20):
            wanted.add((tokens.counter("qwen").count(PROSE * 5), tokens.counter("claude").count(PROSE)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wanted) == 1


def test_lines_are_counted_one_by_one() -> None:
    """`count_lines` gives one number a line, whose sum is close to the whole."""
    counter = tokens.counter("o200k")
    lines = [line + "\n" for line in KINDS["python"].split("\n")]
    costs = counter.count_lines(lines)
    assert len(costs) == len(lines)
    assert sum(costs) >= counter.count("".join(lines)) * 0.95


@pytest.mark.parametrize("family", ["o200k", "unknown"])
def test_large_texts_are_counted_in_parts(family: str) -> None:
    """No tokenizer sees a megabyte at once, and cutting where lines begin leaves the count as it is."""
    seen: list[int] = []
    count = tokens.counter(family)

    def watched(text: str) -> int:
        seen.append(len(text))
        return count.count(text)

    raw = tokens._Counter(count.name, True, watched, watched)
    code = "def first(value):\n    return value + 1\n\n" * 20_000
    assert raw.count(code) == pytest.approx(count.count(code[:40_000]) * len(code) / 40_000, rel=0.001)
    raw.count("_" * 1_000_000)
    assert max(seen) <= 2 * tokens.SLICE


def test_counts_are_kept_for_the_last_texts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is counted once while it is among the last, and anew when it has left."""
    monkeypatch.setattr(tokens, "CACHED_TEXTS", 2)
    asked: list[str] = []

    def raw(text: str) -> int:
        asked.append(text)
        return len(text)

    count = tokens._remembering(raw)  # pyright: ignore[reportPrivateUsage]
    assert [count(text) for text in ("a", "bb", "a", "ccc", "bb", "a", "\ud800")] == [1, 2, 1, 3, 2, 1, 1]
    assert asked == ["a", "bb", "ccc", "a", "\ud800"]
