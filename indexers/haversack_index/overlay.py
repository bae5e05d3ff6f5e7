"""Unsaved buffers in search: their chunks stand in for the indexed chunks of the same paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from haversack_index.database import SEPARATOR
from haversack_index.lexical import Document, counted, pack_terms
from haversack_index.types import Chunk, ParsedFile

# An overlay's chunks carry no content hash of a file on disk: what they show is in the editor only.
UNSAVED = ""


@dataclass(frozen=True, slots=True)
class OverlayChunk:
    """A chunk of an unsaved buffer, ready for the exact scorer."""

    chunk: Chunk
    document: Document
    file_size: int  # of the whole buffer, in characters


def overlay_chunks(files: Sequence[ParsedFile]) -> list[OverlayChunk]:
    """All chunks of all buffers; the last buffer of a path wins. Few, so all of them are scored."""
    latest = {file.path: file for file in files}
    sizes = {path: sum(len(chunk.text) for chunk in file.chunks) for path, file in latest.items()}
    return [
        OverlayChunk(chunk, document_of(chunk), sizes[file.path]) for file in latest.values() for chunk in file.chunks
    ]


def document_of(chunk: Chunk) -> Document:
    terms, length = _terms(chunk.text)
    return Document(chunk.span.path, SEPARATOR.join(chunk.heading), SEPARATOR.join(chunk.names), terms, length)


@lru_cache(maxsize=4_096)  # between two searches most chunks of a buffer are the same
def _terms(text: str) -> tuple[str, int]:
    counts = counted(text)
    return pack_terms(counts), counts.total()
