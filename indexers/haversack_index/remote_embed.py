"""Embedding by a service: Ollama's and OpenAI's forms over one `post` callable.

Forms: https://github.com/ollama/ollama/blob/main/docs/api.md (generate embeddings) and
https://platform.openai.com/docs/api-reference/embeddings. Nothing here opens a connection.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from haversack_index.embed_errors import (
    BadAnswerError,
    EmbeddingError,
    InputTooLongError,
    RejectedError,
    ServiceUnavailableError,
)
from haversack_index.types import Array, Embedder

# Texts and estimated tokens per request: services cut off at 2,048 inputs or some 300,000 tokens, local ones hold all
# of a batch in memory, and a failed request should not lose much work.
MAX_BATCH = 64
MAX_BATCH_TOKENS = 16_000

# Characters per token of code are 3 to 4.3; the low end keeps estimates on the safe side.
CHARACTERS_PER_TOKEN = 3

# Characters sent of one text: 8,000 tokens is what the common models read at most. A longer text loses its tail here
# instead of failing its batch.
MAX_CHARACTERS = 8_000 * CHARACTERS_PER_TOKEN

# Seconds for one request: a local model on a processor embeds a full batch in well under this.
TIMEOUT = 60.0

# Marks of a refusal for length in the messages of Ollama, llama.cpp, vLLM and OpenAI.
_TOO_LONG = ("context length", "input length", "too long", "maximum context", "max_tokens", "too large", "exceeds")

PREPARATION = "p1"


class Post(Protocol):
    """Sends one JSON request and gives the decoded JSON answer.

    Raises OSError (ConnectionError, TimeoutError ...) when no answer came, and an exception with an integer attribute
    `status` for any status but 2xx; its optional attributes are `body` (str) and `headers` (Mapping[str, str]).
    """

    def __call__(self, url: str, json: Any, headers: Mapping[str, str], timeout: float) -> Any: ...


def is_withheld(embedder: Embedder, path: str) -> bool:
    """Whether text of the file at `path` must not be given to this embedder, because its service runs elsewhere."""
    withholds = embedder.withholds if isinstance(embedder, HttpEmbedder) else None
    return withholds is not None and withholds(path)


class HttpEmbedder:
    """Embedder over a service. Raises the exceptions of embed_errors; no retries, the caller owns the back-off.

    `withholds(path)` names files whose text the caller must not pass in; `is_withheld` asks it.
    """

    # Services serve transformer models; with all-MiniLM-L6-v2, the weakest of those in use, 0.7 was the best share.
    vector_weight = 0.7

    def __init__(
        self,
        kind: str,
        endpoint: str,
        model: str,
        post: Post,
        *,
        key: str = "",
        dim: int = 0,
        withholds: Callable[[str], bool] | None = None,
    ) -> None:
        if kind not in ("ollama", "openai"):
            raise ValueError(f"unknown service kind {kind!r}; known kinds: ollama, openai")
        base = endpoint.rstrip("/")
        self._kind = kind
        self._url = base + (
            "/api/embed" if kind == "ollama" else "/embeddings" if base.endswith("/v1") else "/v1/embeddings"
        )
        self._model = model
        self._post = post
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.withholds = withholds
        self.dim = dim or self._probe()
        # The address counts: two services may serve different weights under one name.
        place = hashlib.blake2b(self._url.encode(), digest_size=4).hexdigest()
        self.id = f"{kind}:{model}:{self.dim}:{place}:{PREPARATION}"

    def embed_documents(self, texts: list[str]) -> Array:
        """float32 (len(texts), dim), unit rows; blank texts are not sent and give rows of zeros."""
        out = np.zeros((len(texts), self.dim), np.float32)
        for batch in _batches(texts):
            for index, vector in zip(batch, self._embed([texts[i] for i in batch], batch), strict=True):
                out[index] = vector
        return out

    def embed_query(self, text: str) -> Array:
        """float32 (dim,)."""
        return self.embed_documents([text])[0]

    def _probe(self) -> int:
        """Asks for one vector to learn its size."""
        size = len(self._ask(["probe"])[0])
        if size == 0:
            raise BadAnswerError(f"{self._name()} gave an empty vector")
        return size

    def _embed(self, texts: Sequence[str], places: Sequence[int]) -> list[Array]:
        """One request; only a refusal for length splits it, down to the one text that is too long."""
        try:
            return [self._checked(vector) for vector in self._ask([text[:MAX_CHARACTERS] for text in texts])]
        except _LengthRefused as error:
            if len(texts) == 1:
                raise InputTooLongError(
                    f"{self._name()} finds a text of {len(texts[0])} characters too long", places[0]
                ) from error
            half = len(texts) // 2
            return self._embed(texts[:half], places[:half]) + self._embed(texts[half:], places[half:])

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            answer = self._post(self._url, {"model": self._model, "input": list(texts)}, self._headers, TIMEOUT)
        except EmbeddingError:
            raise
        except OSError as error:
            raise ServiceUnavailableError(f"{self._name()} can't be reached: {_reason(error)}") from error
        except Exception as error:
            raise self._refusal(error) from error
        vectors = _vectors_of(self._kind, answer)
        if vectors is None:
            raise BadAnswerError(f"{self._name()} answered without vectors")
        if len(vectors) != len(texts):
            raise BadAnswerError(f"{self._name()} gave {len(vectors)} vectors for {len(texts)} texts")
        return vectors

    def _refusal(self, error: Exception) -> Exception:
        """The exception that says what an answer with an error status means; errors without a status pass through."""
        status = getattr(error, "status", None)
        if not isinstance(status, int):
            return error
        body = str(getattr(error, "body", "")).lower()
        if status == 429 or status >= 500:
            wait = _retry_after(cast("Mapping[str, str]", getattr(error, "headers", None) or {}))
            # Ollama and llama.cpp report a text over their context as 500: told apart from a sick server by its words.
            if status != 429 and any(mark in body for mark in _TOO_LONG):
                return _LengthRefused()
            return ServiceUnavailableError(f"{self._name()} is not able to answer now (status {status})", wait)
        if status == 413 or (status in (400, 422) and any(mark in body for mark in _TOO_LONG)):
            return _LengthRefused()
        return RejectedError(f"{self._name()} refused the request (status {status})")

    def _checked(self, vector: list[float]) -> Array:
        if len(vector) != self.dim:
            raise BadAnswerError(f"{self._name()} gave a vector of {len(vector)} numbers, expected {self.dim}")
        row = np.asarray(vector, np.float32)
        length = float(np.linalg.norm(row))
        if not math.isfinite(length) or length == 0:
            raise BadAnswerError(f"{self._name()} gave a vector without a direction (NaN, infinite or all zero)")
        return row / np.float32(length)

    def _name(self) -> str:
        return f"embedding service {self._kind} ({self._model})"


class _LengthRefused(Exception):
    """A request was refused for the length of its input."""


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Places of the texts to send together: at most MAX_BATCH, at most MAX_BATCH_TOKENS by estimate; blank ones not."""
    batch: list[int] = []
    tokens = 0
    for index, text in enumerate(texts):
        if not text.strip():
            continue
        cost = min(len(text), MAX_CHARACTERS) // CHARACTERS_PER_TOKEN + 1
        if batch and (len(batch) == MAX_BATCH or tokens + cost > MAX_BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += cost
    if batch:
        yield batch


def _vectors_of(kind: str, answer: Any) -> list[list[float]] | None:
    """The vectors in the order of the inputs, None when the answer has another form."""
    try:
        if kind == "ollama":
            found = list(answer["embeddings"])
        else:
            items = sorted(answer["data"], key=lambda item: item["index"])
            if [item["index"] for item in items] != list(range(len(items))):
                return None
            found = [item["embedding"] for item in items]
        # None stands for NaN in the JSON of some services.
        return [[math.nan if x is None else float(x) for x in vector] for vector in found]
    except (KeyError, TypeError, ValueError):
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header; its date form is not used by embedding services and counts as absent."""
    for name, value in headers.items():
        if name.lower() == "retry-after":
            try:
                seconds = float(value)
            except ValueError:
                return None
            return max(0.0, seconds) if math.isfinite(seconds) else None
    return None


def _reason(error: OSError) -> str:
    match error:
        case ConnectionRefusedError():
            return "connection refused"
        case TimeoutError():
            return "no answer in time"
        case _:
            return error.strerror or type(error).__name__
