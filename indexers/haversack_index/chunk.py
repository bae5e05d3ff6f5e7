"""One file's text to its chunks, symbols, references and imports: the one entry that everything else uses.

Chunks are disjoint, in the order of the file, and hold every line that is not blank. A chunk is a whole definition
or a run of small neighbours; only what is larger than a screenful or three is cut, at the borders of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Tree

from haversack_index.languages import canonical_name, grammar_of, language_of
from haversack_index.parse import ParseFailure, parse_tree
from haversack_index.symbols import Definition, extract, to_symbols
from haversack_index.text import split_lines
from haversack_index.types import Chunk, ChunkKind, ParsedFile, Symbol

# A definition up to this size stays whole: about three screens, or a fifth of a small model's window.
_WHOLE_LINES = 120
_WHOLE_CHARS = 6_000

# A class is cut into its methods from here on: each method is a whole definition that can be found by itself.
_PART_CHARS = 2_500

# Below this a definition says too little alone and joins its neighbours ...
_TINY_CHARS = 300
# ... up to this much, which is what one hit may cost a reader.
_GROUP_CHARS = 1_200

# Line blocks: a screenful, cut at a blank line when one stands in the last part of it.
_BLOCK_LINES = 40

_SECTIONED = frozenset({"markdown", "rst", "json", "toml", "yaml", "html", "css", "ini", "vue", "svelte", "xml"})


def parse_file(path: str, text: str, language: str | None = None) -> ParsedFile:
    """Parse one file. Never raises for any text: what cannot be parsed is cut by lines, and `note` says why."""
    lines = split_lines(text)
    language = canonical_name(language) if language else language_of(path, lines[0] if lines else "")
    grammar = grammar_of(language)
    if grammar and lines:
        # The parser counts rows by \n alone. A lone \r becomes one, which keeps every byte in its place.
        data = _LONE_CR.sub("\n", text).encode("utf-8", "replace")
        try:
            tree = parse_tree(data, grammar)
        except ParseFailure as failure:
            return _by_lines(path, lines, language, str(failure))
        return _by_tree(path, lines, language, tree, data)
    return _by_lines(path, lines, language, "")


_LONE_CR = re.compile(r"\r(?!\n)")


@dataclass(slots=True)
class _Piece:
    """A run of lines on its way to a chunk."""

    start: int
    end: int
    kind: ChunkKind
    heading: tuple[str, ...]
    signature_end: int
    n_chars: int
    mergeable: bool
    group_heading: tuple[str, ...] = ()


def _by_tree(path: str, lines: list[str], language: str, tree: Tree, data: bytes) -> ParsedFile:
    note = ""
    try:
        extracted = extract(tree, data, path, language)
    except (ValueError, OSError) as error:
        # Only the symbols are lost: the tree still says where statements end.
        extracted, note = None, f"no symbols: {error}" if str(error) else "no symbols"
    definitions = extracted.definitions if extracted else ()
    symbols = to_symbols(extracted, path, language) if extracted else ()
    cutter = _Cutter(lines, tree)
    pieces = _merge(cutter.cut([one for one in definitions if one.chunked]), cutter)
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


def _by_lines(path: str, lines: list[str], language: str, note: str) -> ParsedFile:
    pieces = [
        _Piece(start, end, ChunkKind.LINES, (), end, 0, False) for start, end in line_blocks(lines, 0, len(lines))
    ]
    return ParsedFile(path, language, _chunks(path, language, lines, pieces, ()), (), (), (), len(lines), note)


def line_blocks(lines: Sequence[str], start: int, end: int, max_chars: int = _WHOLE_CHARS) -> Iterator[tuple[int, int]]:
    """Blocks of about 40 lines, cut at blank lines where that does not make a block shorter than half."""
    while start < end:
        stop, n_chars = start, 0
        while stop < min(end, start + _BLOCK_LINES) and (stop == start or n_chars + len(lines[stop]) <= max_chars):
            n_chars += len(lines[stop])
            stop += 1
        if stop < end:
            for cut in range(stop, start + (stop - start) // 2, -1):
                if not lines[cut - 1].strip():
                    stop = cut
                    break
        yield start, stop
        start = stop


@dataclass(slots=True)
class _Node:
    """Definitions as a tree of line ranges that do not overlap."""

    start: int
    end: int
    signature_end: int
    path: tuple[str, ...]
    children: list[_Node] = field(default_factory=list["_Node"])


class _Cutter:
    def __init__(self, lines: list[str], tree: Tree) -> None:
        self._lines = lines
        self._tree = tree
        self._sums = [0]
        for line in lines:
            self._sums.append(self._sums[-1] + len(line))

    def n_chars(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start]

    def is_blank(self, start: int, end: int) -> bool:
        return not any(self._lines[row].strip() for row in range(start, end))

    def cut(self, definitions: list[Definition]) -> list[_Piece]:
        pieces: list[_Piece] = []
        self._cut_range(0, len(self._lines), (), _nest(definitions, len(self._lines)), pieces)
        return pieces

    def _cut_range(
        self, start: int, end: int, heading: tuple[str, ...], nodes: list[_Node], pieces: list[_Piece]
    ) -> None:
        """All pieces of the lines start..end, which hold the definitions `nodes`."""
        at = start
        for node in nodes:
            self._cut_gap(at, node.start, heading, pieces)
            self._cut_definition(node, heading, pieces)
            at = node.end
        self._cut_gap(at, end, heading, pieces)

    def _cut_definition(self, node: _Node, heading: tuple[str, ...], pieces: list[_Piece]) -> None:
        n_chars = self.n_chars(node.start, node.end)
        limit = _PART_CHARS if node.children else _WHOLE_CHARS
        if n_chars <= limit and node.end - node.start <= _WHOLE_LINES:
            pieces.append(
                _Piece(
                    node.start,
                    node.end,
                    ChunkKind.DEFINITION,
                    node.path,
                    node.signature_end,
                    n_chars,
                    n_chars < _TINY_CHARS,
                    heading,
                )
            )
            return
        first = len(pieces)
        self._cut_range(node.start, node.end, node.path, node.children, pieces)
        for index in range(first, len(pieces)):
            piece = pieces[index]
            if piece.heading == node.path:
                piece.kind = ChunkKind.DEFINITION
            if index == first and piece.heading == node.path:
                piece.signature_end = min(max(node.signature_end, piece.start), piece.end)
                # The head of a class is its face: it stays by itself.
                piece.mergeable = False

    def _cut_gap(self, start: int, end: int, heading: tuple[str, ...], pieces: list[_Piece]) -> None:
        if start >= end or self.is_blank(start, end):
            return
        if pieces and heading and not any(_WORD.search(self._lines[row]) for row in range(start, end)):
            # Closing brackets belong to what they close.
            last = pieces[-1]
            if last.signature_end == last.end:
                last.signature_end = end
            last.end = end
            last.n_chars = self.n_chars(last.start, end)
            return
        for part_start, part_end in self._parts(start, end):
            n_chars = self.n_chars(part_start, part_end)
            pieces.append(
                _Piece(part_start, part_end, ChunkKind.GROUP, heading, part_end, n_chars, n_chars < _GROUP_CHARS, heading)
            )

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A long range cut at the borders of its statements, else at blank lines."""
        if self.n_chars(start, end) <= _PART_CHARS:
            yield start, end
            return
        borders = [row for row in self._borders(start, end) if start < row < end]
        at = start
        last = start
        for border in [*borders, end]:
            if self.n_chars(at, border) > _PART_CHARS and last > at:
                yield at, last
                at = last
            if self.n_chars(at, border) > _WHOLE_CHARS:
                yield from line_blocks(self._lines, at, border, _PART_CHARS)
                at = border
            last = border
        if at < end:
            yield at, end

    def _borders(self, start: int, end: int) -> list[int]:
        """Rows between start and end where a statement begins; statements too large are looked into."""
        rows: list[int] = []
        cursor = self._tree.walk()
        if cursor.goto_first_child_for_point((start, 0)) is None:
            return rows
        after_comment = -1
        depth = 1
        while True:
            node = cursor.node
            assert node is not None
            first, last = node.start_point.row, node.end_point.row
            if first < end and last >= start:
                if first != after_comment:
                    rows.append(first)
                if node.is_extra and node.is_named:
                    after_comment = last + (node.end_point.column > 0)
                elif (
                    (first < start or last >= end or self.n_chars(first, last + 1) > _PART_CHARS)
                    and last > first
                    and depth < _LOOK_DEPTH
                    and cursor.goto_first_child()
                ):
                    depth += 1
                    continue
            if first >= end:
                while depth > 1:
                    cursor.goto_parent()
                    depth -= 1
                break
            while not cursor.goto_next_sibling():
                if depth == 1:
                    return sorted(set(rows))
                cursor.goto_parent()
                depth -= 1
        return sorted(set(rows))


# A statement too large to keep whole is looked into this deep: enough for any list inside a call inside a block.
_LOOK_DEPTH = 60

_WORD = re.compile(r"\w")


def _nest(definitions: list[Definition], n_lines: int) -> list[_Node]:
    """Definitions as a tree of disjoint line ranges; definitions that share a line become one."""
    root = _Node(0, n_lines, 0, ())
    stack = [(root, -1, 1 << 60)]
    for one in definitions:
        while stack[-1][2] <= one.start_byte:
            stack.pop()
        parent = stack[-1][0]
        start, end = max(one.comment_start, parent.start), min(one.end, parent.end)
        siblings = parent.children
        if siblings and start < siblings[-1].end:
            last = siblings[-1]
            if one.start >= last.end:
                start = last.end  # only its comments share a line with the one before
            else:
                last.end = max(last.end, end)
                last.signature_end = last.end
                stack.append((last, one.start_byte, one.end_byte))
                last.children.clear()
                continue
        if start >= end or (parent is not root and start == parent.start):
            continue
        node = _Node(start, end, one.signature_end, one.path)
        siblings.append(node)
        stack.append((node, one.start_byte, one.end_byte))
    return root.children


def _merge(pieces: list[_Piece], cutter: _Cutter) -> list[_Piece]:
    """Join runs of small neighbours under the same heading."""
    merged: list[_Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.mergeable
            and piece.mergeable
            and last.group_heading == piece.group_heading
            and cutter.n_chars(last.start, piece.end) <= _GROUP_CHARS
        ):
            last.kind, last.heading = ChunkKind.GROUP, last.group_heading
            last.end = last.signature_end = piece.end
            last.n_chars = cutter.n_chars(last.start, last.end)
        else:
            merged.append(piece)
    return merged


def _chunks(
    path: str, language: str, lines: list[str], pieces: list[_Piece], symbols: tuple[Symbol, ...]
) -> tuple[Chunk, ...]:
    from haversack_index.types import Span

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
        chunks.append(
            Chunk(
                Span(path, start, end),
                piece.kind,
                piece.heading,
                "".join(lines[start:end]),
                language,
                signature_end,
                tuple(names),
            )
        )
    return tuple(chunks)
