"""From a path to the rows the store takes: read, hash, parse, cut into words, embed. Runs in parse processes."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from haversack_index.chunk import parse_file
from haversack_index.database import SEPARATOR
from haversack_index.embed import document_text, is_withheld
from haversack_index.embed_errors import InputTooLongError, ServiceUnavailableError
from haversack_index.languages import language_of
from haversack_index.lexical import counted, name_words, pack_terms, path_words
from haversack_index.store import ChunkRow, FileRows, StoredFile
from haversack_index.text import content_hash, decode
from haversack_index.types import Array, Chunk, Embedder, ParsedFile, SkipReason, Symbol
from haversack_index.vectors import BadVectorsError, quantise
from haversack_index.walk import CannotRead, WalkRules, content_skip, read_file

# File systems keep times in steps of up to two seconds; a file changed this shortly before it was read may change
# again without its time or size showing it, so it is read again next time.
RACY_NS = 2_000_000_000
# One call of an embedder gets about 4,000 tokens at 3 characters each: services refuse larger batches.
EMBED_BATCH_CHARS = 12_000


class Task(NamedTuple):
    """A file to look at. `known_hash` is of its stored content, empty when it is new."""

    path: str
    size: int
    known_hash: str = ""


@dataclass(frozen=True, slots=True)
class EmbedFailure:
    """Why vectors are missing. `lasting`: trying again does not help before something is changed."""

    message: str
    lasting: bool
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What came of one file: `rows` if it is new or changed, `unchanged` if its content is as stored, else `skip`."""

    path: str
    rows: FileRows | None = None
    unchanged: StoredFile | None = None
    skip: SkipReason | None = None
    detail: str = ""
    size: int = 0
    mtime_ns: int = 0
    problem: str = ""
    failure: EmbedFailure | None = None


Known = Callable[[Sequence[bytes]], set[bytes]]
"""Which of these vector keys the store has already."""


def prepare_files(
    root: Path,
    rules: WalkRules,
    tasks: Sequence[Task],
    embedder: Embedder | None = None,
    known: Known | None = None,
    *,
    on_file: Callable[[int], None] | None = None,
) -> list[Prepared]:
    """Prepare several files and embed their new chunks together. `on_file(index)` is called before each file."""
    prepared: list[Prepared] = []
    texts: dict[bytes, tuple[str, str]] = {}
    for index, task in enumerate(tasks):
        if on_file is not None:
            on_file(index)
        one, file_texts = prepare_file(root, rules, task)
        prepared.append(one)
        texts |= file_texts
    if embedder is None or not texts:
        return prepared
    if on_file is not None:
        on_file(len(tasks))
    for key in known(list(texts)) if known is not None else set[bytes]():
        del texts[key]
    vectors, problems, failure = embed_texts(embedder, texts)
    filled: list[Prepared] = []
    for one in prepared:
        if one.rows is None:
            filled.append(one)
            continue
        keys = [chunk.vector_key for chunk in one.rows.chunks]
        rows = replace(one.rows, vectors={key: vectors[key] for key in keys if key in vectors})
        filled.append(replace(one, rows=rows, problem=problems.get(one.path, one.problem), failure=failure))
    return filled


def prepare_file(
    root: Path, rules: WalkRules, task: Task, lines_only: str = ""
) -> tuple[Prepared, dict[bytes, tuple[str, str]]]:
    """One file, and the texts to embed for it: vector key to (path, text).

    `lines_only` is the note of a file that could not be parsed in time: it is cut into line blocks.
    """
    path = task.path
    try:
        status = os.stat(os.path.join(root, path), follow_symlinks=False)
        data = read_file(root, path, rules.max_file_size)
    except CannotRead as error:
        return Prepared(path, skip=error.reason, detail=error.detail), {}
    except (FileNotFoundError, NotADirectoryError):
        return Prepared(path, skip=SkipReason.GONE), {}
    except OSError as error:
        return Prepared(path, skip=SkipReason.UNREADABLE, detail=error.strerror or ""), {}
    # Asked before the read: a change in between leaves an older time in the store and is seen next time.
    stored = StoredFile(content_hash(data), status.st_size, status.st_mtime_ns, _is_racy(status.st_mtime_ns))
    if stored.content_hash == task.known_hash:
        return Prepared(path, unchanged=stored), {}
    reason = content_skip(path, data)
    decoded = decode(data) if reason is None else None
    if decoded is None:
        kept = (0, 0) if stored.racy else (stored.size, stored.mtime_ns)
        return Prepared(path, skip=reason or SkipReason.UNDECODABLE, size=kept[0], mtime_ns=kept[1]), {}
    parsed = _parse(path, decoded[0], lines_only)
    rows = file_rows(parsed, stored)
    texts = {
        row.vector_key: (path, document_text(path, chunk.heading, chunk.text))
        for row, chunk in zip(rows.chunks, parsed.chunks, strict=True)
    }
    return Prepared(path, rows=rows), texts


def file_rows(parsed: ParsedFile, stored: StoredFile) -> FileRows:
    """The rows of a parsed file, without vectors."""
    return FileRows(
        path=parsed.path,
        content_hash=stored.content_hash,
        size=stored.size,
        mtime_ns=stored.mtime_ns,
        racy=stored.racy,
        language=parsed.language,
        n_lines=parsed.n_lines,
        note=parsed.note,
        imports=SEPARATOR.join(parsed.imports),
        path_words=" ".join(path_words(parsed.path)),
        chunks=tuple(_chunk_row(chunk) for chunk in parsed.chunks),
        symbols=tuple(_symbol_row(symbol) for symbol in parsed.symbols),
        refs=tuple((reference.name, reference.line, reference.within) for reference in parsed.references),
    )


def vector_key(path: str, heading: tuple[str, ...], text: str) -> bytes:
    """Identity of an embedded text, so that the same text is embedded once, whatever branch or moment brings it."""
    return hashlib.blake2b(document_text(path, heading, text).encode("utf-8", "replace"), digest_size=16).digest()


def embed_texts(
    embedder: Embedder, texts: dict[bytes, tuple[str, str]]
) -> tuple[dict[bytes, bytes], dict[str, str], EmbedFailure | None]:
    """Vectors by key for `texts` (key to path and text), problems by path, and the failure that stopped it, if any.

    A text the embedder refuses for its length gets a vector of zeros and a problem naming its file; the others go on.
    Text of files that are withheld from the embedder gets no vector.
    """
    made: dict[bytes, bytes] = {}
    problems: dict[str, str] = {}
    waiting = [item for item in texts.items() if not is_withheld(embedder, item[1][0])]
    while waiting:
        batch, size = [waiting[0]], len(waiting[0][1][1])
        for item in waiting[1:]:
            size += len(item[1][1])
            if size > EMBED_BATCH_CHARS:
                break
            batch.append(item)
        try:
            rows = _embed(embedder, [text for _, (_, text) in batch])
        except InputTooLongError as error:
            key, (path, _) = batch[error.index if 0 <= error.index < len(batch) else 0]
            made[key] = bytes(embedder.dim)
            problems[path] = f"{path}: a part is too long for the embedding model and is found by words only."
            waiting = [item for item in waiting if item[0] != key]
            continue
        except ServiceUnavailableError as error:
            return made, problems, EmbedFailure(str(error), False, error.retry_after)
        except Exception as error:  # noqa: BLE001 - an embedder is any code; the text index goes on without it
            lasting = isinstance(error, BadVectorsError) or not isinstance(error, OSError)
            return made, problems, EmbedFailure(str(error) or type(error).__name__, lasting)
        made.update(zip((key for key, _ in batch), rows, strict=True))
        waiting = waiting[len(batch) :]
    return made, problems, None


def _embed(embedder: Embedder, texts: list[str]) -> list[bytes]:
    rows: Array = np.asarray(embedder.embed_documents(texts), np.float32)
    return quantise(rows, embedder.dim, len(texts))


def _parse(path: str, text: str, lines_only: str) -> ParsedFile:
    if not lines_only:
        return parse_file(path, text)
    return replace(parse_file(path, text, "text"), language=language_of(path), note=lines_only)


def _chunk_row(chunk: Chunk) -> ChunkRow:
    counts = counted(chunk.text)
    heading, names = SEPARATOR.join(chunk.heading), SEPARATOR.join(chunk.names)
    return ChunkRow(
        start=chunk.span.start,
        end=chunk.span.end,
        kind=chunk.kind.value,
        heading=heading,
        names=names,
        signature_end=chunk.signature_end,
        language=chunk.language,
        length=counts.total(),
        terms=pack_terms(counts),
        vector_key=vector_key(chunk.span.path, chunk.heading, chunk.text),
        name_words=" ".join(name_words(heading, names)),
        body=" ".join(counts.elements()),
    )


def _symbol_row(symbol: Symbol) -> tuple[str, str, str, int, int, int, int, str, str, str, int]:
    return (
        symbol.name,
        symbol.name.lower(),
        symbol.kind.value,
        symbol.span.start,
        symbol.span.end,
        symbol.line,
        symbol.signature_end,
        SEPARATOR.join(symbol.container),
        symbol.signature,
        symbol.language,
        symbol.depth,
    )


def _is_racy(mtime_ns: int) -> bool:
    return mtime_ns > time.time_ns() - RACY_NS
