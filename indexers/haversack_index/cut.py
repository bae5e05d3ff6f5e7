"""A syntax tree's lines into pieces: whole definitions, runs of small ones, and parts of large ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Tree

from haversack_index.definitions import Definition
from haversack_index.types import ChunkKind

# A definition up to this size stays whole: about three screens, or a fifth of a small model's window.
_WHOLE_LINES = 120
_WHOLE_CHARS = 6_000

# A class is cut into its methods from here on, and loose statements are gathered up to here: what one vector can
# still stand for, and what a reader takes in as one thing.
PART_CHARS = 2_500

# Below this a definition says too little alone and joins its neighbours ...
TINY_CHARS = 300
# ... up to this much, which is what one hit may cost a reader.
GROUP_CHARS = 1_200

# Less than two full lines is a scrap.
_SCRAP_CHARS = 150

# Line blocks: a screenful.
_BLOCK_LINES = 40

# A statement too large to keep whole is looked into this deep: enough for any list inside a call inside a block.
_LOOK_DEPTH = 60

# Definitions nest this deep in no code that a person wrote; deeper ones are cut by statements.
_NEST_DEPTH = 40

# Lines that only end something: brackets, `end`, `fi`, `#endif`.
_CLOSER = re.compile(r"\W*(?:end(?:if|region)\b.*|(?:end|fi|done|esac)\b\W*)?", re.DOTALL)

_COMMENTS = ("#", "//", "/*", "--", "*", "{-", ";")


class Lines:
    """Lines of a file with their summed lengths, so that the size of any run is one subtraction."""

    __slots__ = ("_lines", "_sums")

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        total = 0
        self._sums = [0]
        for line in lines:
            total += len(line)
            self._sums.append(total)

    def __len__(self) -> int:
        return len(self._lines)

    def n_chars(self, start: int, end: int) -> int:
        return self._sums[end] - self._sums[start]

    def is_blank(self, start: int, end: int) -> bool:
        return not any(line.strip() for line in self._lines[start:end])

    def only_close(self, start: int, end: int) -> bool:
        return all(_CLOSER.fullmatch(line) for line in self._lines[start:end])

    def opens_with_comment(self, start: int, end: int) -> bool:
        first = next((line for line in self._lines[start:end] if line.strip()), "")
        return first.lstrip().startswith(_COMMENTS)


@dataclass(slots=True)
class Piece:
    """A run of lines on its way to a chunk. A mergeable one may join others that stand under `group_heading`."""

    start: int
    end: int
    kind: ChunkKind
    heading: tuple[str, ...]
    signature_end: int
    mergeable: bool = False
    group_heading: tuple[str, ...] = ()
    is_definition: bool = False  # whole, or part of a large one that was cut
    is_head: bool = False  # the first part of a definition that was cut


@dataclass(slots=True)
class _Node:
    """Definitions as a tree of line ranges that do not overlap."""

    start: int
    end: int
    signature_end: int
    path: tuple[str, ...]
    children: list[_Node] = field(default_factory=list["_Node"])


def cut_by_tree(lines: Lines, tree: Tree, definitions: Sequence[Definition]) -> list[Piece]:
    """Disjoint pieces in order that hold every line that is not blank. `definitions` by start, outer before inner."""
    cutter = _Cutter(lines, tree)
    cutter.cut_range(0, len(lines), (), _nest(definitions, len(lines)), 0)
    return _merge(cutter.pieces, lines)


def line_blocks(
    lines: Lines, start: int, end: int, max_lines: int = _BLOCK_LINES, max_chars: int = _WHOLE_CHARS
) -> Iterator[tuple[int, int]]:
    """Blocks up to both limits, cut at a blank line where that does not make a block shorter than half."""
    while start < end:
        stop = start + 1
        while stop < min(end, start + max_lines) and lines.n_chars(start, stop + 1) <= max_chars:
            stop += 1
        if stop < end:
            for cut in range(stop, start + (stop - start) // 2, -1):
                if lines.is_blank(cut - 1, cut):
                    stop = cut
                    break
        yield start, stop
        start = stop


class _Cutter:
    def __init__(self, lines: Lines, tree: Tree) -> None:
        self.pieces: list[Piece] = []
        self._lines = lines
        self._tree = tree

    def cut_range(self, start: int, end: int, heading: tuple[str, ...], nodes: list[_Node], depth: int) -> None:
        """All pieces of the lines start..end, which hold the definitions `nodes`."""
        at = start
        for node in nodes:
            self._cut_gap(at, node.start, heading)
            self._cut_definition(node, heading, depth)
            at = node.end
        self._cut_gap(at, end, heading)

    def _cut_definition(self, node: _Node, heading: tuple[str, ...], depth: int) -> None:
        n_chars = self._lines.n_chars(node.start, node.end)
        limit = PART_CHARS if node.children else _WHOLE_CHARS
        if n_chars <= limit and node.end - node.start <= _WHOLE_LINES:
            is_tiny = n_chars < TINY_CHARS
            piece = Piece(
                node.start, node.end, ChunkKind.DEFINITION, node.path, node.signature_end, is_tiny, heading, True
            )
            self.pieces.append(piece)
            return
        first = len(self.pieces)
        children = node.children if depth < _NEST_DEPTH else []
        self.cut_range(node.start, node.end, node.path, children, depth + 1)
        for index in range(first, len(self.pieces)):
            piece = self.pieces[index]
            if piece.heading == node.path and piece.group_heading == node.path:
                piece.kind = ChunkKind.DEFINITION
                if index == first:
                    piece.is_head = piece.is_definition = True
                    piece.signature_end = min(max(node.signature_end, piece.start), piece.end)
                    # The head of a class is its face: it stays by itself.
                    piece.mergeable = False

    def _cut_gap(self, start: int, end: int, heading: tuple[str, ...]) -> None:
        """Lines between definitions: imports, fields, statements."""
        if start >= end or self._lines.is_blank(start, end):
            return
        if self.pieces and self._lines.only_close(start, end):
            # Closing brackets belong to what they close.
            last = self.pieces[-1]
            if last.signature_end == last.end:
                last.signature_end = end
            last.end = end
            return
        for part_start, part_end in self._parts(start, end):
            is_small = self._lines.n_chars(part_start, part_end) < GROUP_CHARS
            self.pieces.append(Piece(part_start, part_end, ChunkKind.GROUP, heading, part_end, is_small, heading))

    def _parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """A long range cut at the borders of its statements, else at blank lines."""
        if self._lines.n_chars(start, end) <= PART_CHARS:
            return [(start, end)]
        parts: list[tuple[int, int]] = []
        at = last = start
        for border in [*self._borders(start, end), end]:
            if self._lines.n_chars(at, border) > PART_CHARS and last > at:
                parts.append((at, last))
                at = last
            if self._lines.n_chars(at, border) > _WHOLE_CHARS:
                parts += line_blocks(self._lines, at, border, border - at, PART_CHARS)
                at = border
            last = border
        if at < end:
            if parts and self._lines.n_chars(at, end) < TINY_CHARS:
                parts[-1] = (parts[-1][0], end)
            else:
                parts.append((at, end))
        return parts

    def _borders(self, start: int, end: int) -> list[int]:
        """Rows inside start..end where a statement begins; statements too large to keep are looked into."""
        rows: set[int] = set()
        cursor = self._tree.walk()
        if cursor.goto_first_child_for_point((start, 0)) is None:
            return []
        after_comment = -1
        depth = 1
        while (node := cursor.node) is not None:
            first, (last, last_column) = node.start_point.row, node.end_point
            if first >= end:
                break
            if last >= start:
                # A comment stays with the statement below it.
                if start < first != after_comment:
                    rows.add(first)
                if node.is_extra and node.is_named:
                    after_comment = last + (last_column > 0)
                is_large = first < start or last >= end or self._lines.n_chars(first, last + 1) > PART_CHARS
                if is_large and last > first and depth < _LOOK_DEPTH and cursor.goto_first_child():
                    depth += 1
                    continue
            while not cursor.goto_next_sibling():
                if depth == 1:
                    return sorted(rows)
                cursor.goto_parent()
                depth -= 1
        return sorted(rows)


def _nest(definitions: Sequence[Definition], n_lines: int) -> list[_Node]:
    """Definitions as a tree of disjoint line ranges; definitions that share a line become one."""
    root = _Node(0, n_lines, 0, ())
    stack = [(root, 1 << 60)]
    for definition in definitions:
        while stack[-1][1] <= definition.start_byte:
            stack.pop()
        parent = stack[-1][0]
        start, end = max(definition.comment_start, parent.start), min(definition.end, parent.end)
        last = parent.children[-1] if parent.children else None
        if last is not None and start < last.end:
            if definition.start < last.end:
                last.end = max(last.end, end)
                last.signature_end = last.end
                last.children.clear()
                stack.append((last, definition.end_byte))
                continue
            start = last.end  # only its comments share a line with the one before
        if start >= end or (parent is not root and definition.start == parent.start):
            # It opens on its holder's first line: to cut there would cut the line.
            continue
        node = _Node(start, end, definition.signature_end, definition.path)
        parent.children.append(node)
        stack.append((node, definition.end_byte))
    return root.children


def _merge(pieces: list[Piece], lines: Lines) -> list[Piece]:
    """Join runs of small neighbours that stand under the same heading, and give what is left to a neighbour."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if last is None or lines.n_chars(last.start, piece.end) > GROUP_CHARS:
            merged.append(piece)
        elif last.mergeable and piece.mergeable and last.group_heading == piece.group_heading:
            last.kind, last.heading = ChunkKind.GROUP, last.group_heading
            last.end = last.signature_end = piece.end
        elif last.is_head and piece.group_heading == last.heading and lines.n_chars(last.start, last.end) < TINY_CHARS:
            # `class Name:` alone says little; with its constructor it is the face of the class.
            last.end = piece.end
        else:
            merged.append(piece)
    return _attach(merged, lines)


def _attach(pieces: list[Piece], lines: Lines) -> list[Piece]:
    """A line or two left between large neighbours joins one: a comment goes to what follows, code to what precedes."""
    attached: list[Piece] = []
    carried: int | None = None
    for index, piece in enumerate(pieces):
        start = piece.start if carried is None else carried
        carried = None
        is_scrap = not piece.is_definition and lines.n_chars(piece.start, piece.end) < _SCRAP_CHARS
        following = pieces[index + 1] if index + 1 < len(pieces) else None
        stays_near = following is not None and following.group_heading == piece.group_heading
        if is_scrap and stays_near and (not attached or lines.opens_with_comment(piece.start, piece.end)):
            carried = start
            continue
        if is_scrap and attached and piece.group_heading in {attached[-1].group_heading, attached[-1].heading}:
            attached[-1].end = piece.end
            continue
        piece.start = start
        attached.append(piece)
    return attached
