"""One file's text to its chunks, symbols, references and imports: the one entry that everything else uses.

Chunks are disjoint, in the order of the file, and hold every line that is not blank. A chunk is a whole definition
or a run of small neighbours; only what is larger than a few screens is cut, at the borders of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Tree

from haversack_index import sections
from haversack_index.cut import GROUP_CHARS, PART_CHARS, TINY_CHARS, Lines, Piece, cut_by_tree, line_blocks
from haversack_index.languages import canonical_name, grammar_of, language_of, settle
from haversack_index.parse import SIZE_LIMIT, ParseFailure, parse_tree
from haversack_index.symbols import extract, to_symbols
from haversack_index.text import split_lines
from haversack_index.types import Chunk, ChunkKind, ParsedFile, Span, Symbol

# A file with more headings than this is data: its keys are not what anybody asks for by name.
_HEADS_LIMIT = 2_000

_LONE_CR = re.compile(r"\r(?!\n)")


def parse_file(path: str, text: str, language: str | None = None) -> ParsedFile:
    """Parse one file. Never raises for any text: what cannot be parsed is cut by lines, and `note` says why.

    `language` is one of ours or an editor's id; when None it is told from the path and the first line.
    """
    lines = split_lines(text)
    language = canonical_name(language) if language else language_of(path, lines[0] if lines else "")
    language = settle(language, path, text)
    grammar = grammar_of(language)
    if not grammar or not lines:
        return _by_heads(path, lines, language)
    # The parser counts rows by \n alone. A lone \r becomes one, which keeps every byte in its place.
    data = _LONE_CR.sub("\n", text).encode("utf-8", "replace")
    try:
        tree = parse_tree(data, grammar)
    except ParseFailure as failure:
        return _by_lines(path, lines, language, str(failure))
    return _by_tree(path, lines, language, tree, data)


def _by_tree(path: str, lines: list[str], language: str, tree: Tree, data: bytes) -> ParsedFile:
    try:
        extracted, note = extract(tree, data, path, language), ""
    except (ValueError, OSError) as error:
        # Only the symbols are lost: the tree still says where statements end.
        extracted, note = None, f"no symbols: {error}"
    definitions = extracted.definitions if extracted else ()
    symbols = to_symbols(extracted, path, language) if extracted else ()
    pieces = cut_by_tree(Lines(lines), tree, [definition for definition in definitions if definition.chunked])
    return ParsedFile(
        path,
        language,
        _chunks(path, language, lines, pieces, symbols),
        symbols,
        extracted.references if extracted else (),
        extracted.imports if extracted else (),
        len(lines),
        note,
    )


def _by_heads(path: str, lines: list[str], language: str) -> ParsedFile:
    """Prose and config files: a chunk is a heading with its text, or a run of small ones."""
    measured = Lines(lines)
    if measured.n_chars(0, len(lines)) > SIZE_LIMIT:
        return _by_lines(path, lines, language, "too large")
    heads = sections.find_heads(language, lines)
    if len(heads) > _HEADS_LIMIT:
        heads = [head for head in heads if head.level == 1]
    if not heads or len(heads) > _HEADS_LIMIT:
        return _by_lines(path, lines, language, "")
    symbols = sections.to_symbols(heads, path, lines, language)
    pieces = _merge_sections(_sections(measured, heads), measured)
    return ParsedFile(path, language, _chunks(path, language, lines, pieces, symbols), symbols, (), (), len(lines))


def _by_lines(path: str, lines: list[str], language: str, note: str) -> ParsedFile:
    pieces = [Piece(start, end, ChunkKind.LINES, (), end) for start, end in line_blocks(Lines(lines), 0, len(lines))]
    return ParsedFile(path, language, _chunks(path, language, lines, pieces, ()), (), (), (), len(lines), note)


def _sections(lines: Lines, heads: Sequence[sections.Head]) -> Iterator[Piece]:
    """A piece for what stands before the first head, then one for each head; a small section keeps its subsections."""
    kept: list[sections.Head] = []
    swallowed = 0
    for head in heads:
        if head.row < swallowed or (kept and head.row == kept[-1].row):
            continue
        kept.append(head)
        if lines.n_chars(head.row, head.end) <= GROUP_CHARS:
            swallowed = head.end
    borders = [head.row for head in kept] + [len(lines)]
    yield Piece(0, borders[0], ChunkKind.SECTION, (), borders[0])
    for head, end in zip(kept, borders[1:], strict=True):
        first = True
        for start, stop in _paragraphs(lines, head.row, end):
            yield Piece(start, stop, ChunkKind.SECTION, head.path, min(start + 1, stop) if first else stop)
            first = False


def _paragraphs(lines: Lines, start: int, end: int) -> Iterable[tuple[int, int]]:
    if lines.n_chars(start, end) <= PART_CHARS:
        return [(start, end)]
    return line_blocks(lines, start, end, max_lines=end - start, max_chars=PART_CHARS)


def _merge_sections(pieces: Iterable[Piece], lines: Lines) -> list[Piece]:
    """Join a tiny section to its neighbour when one heads the other or both stand under the same heading."""
    merged: list[Piece] = []
    for piece in pieces:
        if lines.is_blank(piece.start, piece.end):
            continue
        last = merged[-1] if merged else None
        if last is not None and lines.n_chars(last.start, piece.end) <= GROUP_CHARS:
            shared = _shared(last.heading, piece.heading)
            is_near = len(shared) + 1 >= min(len(last.heading), len(piece.heading))
            is_tiny = min(lines.n_chars(last.start, last.end), lines.n_chars(piece.start, piece.end)) < TINY_CHARS
            if is_near and is_tiny:
                last.end = last.signature_end = piece.end
                last.heading = shared
                continue
        merged.append(piece)
    return merged


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return one[:count]


def _chunks(
    path: str, language: str, lines: list[str], pieces: Iterable[Piece], symbols: tuple[Symbol, ...]
) -> tuple[Chunk, ...]:
    """Pieces without their blank edges, with the names whose lines they hold."""
    by_line = sorted(symbols, key=lambda symbol: (symbol.line, symbol.depth))
    chunks: list[Chunk] = []
    at = 0
    for piece in pieces:
        start, end = piece.start, piece.end
        while start < end and not lines[start].strip():
            start += 1
        while end > start and not lines[end - 1].strip():
            end -= 1
        if start == end:
            continue
        while at < len(by_line) and by_line[at].line < start:
            at += 1
        names: dict[str, None] = {}
        while at < len(by_line) and by_line[at].line < end:
            names[by_line[at].name] = None
            at += 1
        signature_end = min(max(piece.signature_end, start), end)
        text = "".join(lines[start:end])
        span = Span(path, start, end)
        chunks.append(Chunk(span, piece.kind, piece.heading, text, language, signature_end, tuple(names)))
    return tuple(chunks)
