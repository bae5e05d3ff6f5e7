"""Text to vectors: chooses an embedder by kind, and says what text stands for a chunk.

Kinds: "static" (shipped, the default), "minilm" (optional extra), "model2vec" (a directory, optional extra),
"ollama" and "openai" (a service, reached through the `post` callable that the caller lends).
"""

from __future__ import annotations

from collections.abc import Callable

from haversack_index.embed_errors import EmbeddingError
from haversack_index.model_embed import MiniLmEmbedder, Model2VecEmbedder
from haversack_index.remote_embed import HttpEmbedder, Post, is_withheld
from haversack_index.static_table import StaticEmbedder
from haversack_index.types import Embedder

__all__ = [
    "KINDS",
    "EmbeddingError",
    "HttpEmbedder",
    "MiniLmEmbedder",
    "Model2VecEmbedder",
    "StaticEmbedder",
    "document_text",
    "is_withheld",
    "load_embedder",
]

KINDS = ("static", "minilm", "model2vec", "ollama", "openai")


def load_embedder(
    kind: str,
    *,
    endpoint: str = "",
    model: str = "",
    post: Post | None = None,
    withholds: Callable[[str], bool] | None = None,
    key: str = "",
) -> Embedder:
    """The embedder of a kind. `endpoint`: base address of a service, or the directory of a model2vec model.

    Raises ValueError for an unknown kind or a missing argument, EmbeddingError when the embedder can't work here.
    A service is asked once for its vector size, so a wrong model name fails here and not in the middle of a pass.
    `withholds(path)` names files whose text a service must not see; `key` is sent to it as a bearer token.
    """
    match kind:
        case "static":
            return StaticEmbedder()
        case "minilm":
            return MiniLmEmbedder()
        case "model2vec":
            if not endpoint:
                raise ValueError("embedder kind 'model2vec' needs the directory of a model as endpoint")
            return Model2VecEmbedder(endpoint)
        case "ollama" | "openai":
            if post is None or not endpoint or not model:
                raise ValueError(f"embedder kind {kind!r} needs an endpoint, a model and a way to post")
            return HttpEmbedder(kind, endpoint, model, post, withholds=withholds, key=key)
        case _:
            raise ValueError(f"unknown embedder kind {kind!r}; known kinds: {', '.join(KINDS)}")


def document_text(path: str, heading: tuple[str, ...], text: str) -> str:
    """What is embedded for a chunk: where it stands first, then its own text, since only a head of it is read."""
    return "\n".join((path, " ".join(heading), text))
