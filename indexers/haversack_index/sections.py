"""Headings of prose and config files, found by line rules: a broken table or tag costs one heading, not the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from haversack_index.types import Span, Symbol, SymbolKind

# Longer lines are data or minified markup: no heading stands in them, and patterns take long to say so.
_LINE_LIMIT = 2_000

# Headings longer than this are prose.
_TITLE_LIMIT = 120


@dataclass(frozen=True, slots=True)
class Head:
    """A line that opens a section. `level` counts from 1; `end` is the line after the next head of the same level."""

    row: int
    level: int
    title: str
    path: tuple[str, ...] = ()
    end: int = 0


def find_heads(language: str, lines: Sequence[str]) -> list[Head]:
    """Heads in the order of the file, with the titles that enclose each."""
    finder = _FINDERS.get(language)
    if finder is None:
        return []
    found = list(finder([line if len(line) <= _LINE_LIMIT else "" for line in lines]))
    ends = [len(lines)] * len(found)
    heads: list[Head] = []
    open_heads: list[int] = []
    for index, head in enumerate(found):
        while open_heads and found[open_heads[-1]].level >= head.level:
            ends[open_heads.pop()] = head.row
        open_heads.append(index)
        path = tuple(found[at].title for at in open_heads)
        heads.append(Head(head.row, head.level, head.title, path))
    return [Head(head.row, head.level, head.title, head.path, end) for head, end in zip(heads, ends, strict=True)]


def to_symbols(heads: Sequence[Head], path: str, lines: Sequence[str], language: str) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(
            head.title,
            SymbolKind.HEADING,
            Span(path, head.row, head.end),
            head.row,
            min(head.row + 1, head.end),
            head.path[:-1],
            lines[head.row].strip()[:200],
            language,
            len(head.path) - 1,
        )
        for head in heads
    )


def _markdown(lines: Sequence[str]) -> Iterator[Head]:
    fence = ""
    start = _after_front_matter(lines)
    for row in range(start, len(lines)):
        line = lines[row]
        mark = _FENCE.match(line)
        if mark:
            if not fence:
                fence = mark[1]
            elif line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if fence:
            continue
        atx = _ATX.match(line)
        if atx:
            title = atx[2].strip()
            if title:
                yield Head(row, len(atx[1]), title[:_TITLE_LIMIT])
            continue
        if row + 1 < len(lines) and _is_prose_line(lines, row, start):
            underline = _SETEXT.match(lines[row + 1])
            if underline:
                yield Head(row, 1 if underline[1][0] == "=" else 2, line.strip()[:_TITLE_LIMIT])


_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_NOT_TITLE = re.compile(r"\s{4}|\t|\s*(?:[-*+>|#<]|\d+[.)]\s)")


def _is_prose_line(lines: Sequence[str], row: int, start: int) -> bool:
    """A setext title is one line of prose after a blank line: paragraphs and tables before `---` are not titles."""
    line = lines[row]
    return bool(line.strip()) and not _NOT_TITLE.match(line) and (row == start or not lines[row - 1].strip())


def _after_front_matter(lines: Sequence[str]) -> int:
    if not lines or lines[0].strip() not in {"---", "+++"}:
        return 0
    mark = lines[0].strip()
    for row in range(1, min(len(lines), 200)):
        if lines[row].strip() == mark:
            return row + 1
    return 0


def _rst(lines: Sequence[str]) -> Iterator[Head]:
    levels: dict[str, int] = {}
    row = 0
    while row + 1 < len(lines):
        title, under = lines[row].strip(), lines[row + 1].rstrip()
        over = row > 0 and bool(_ADORNMENT.match(lines[row - 1].rstrip()))
        if (
            title
            and _ADORNMENT.match(under)
            and not _ADORNMENT.match(title)
            and len(under) >= min(len(title), 4)
            and (over or not lines[row][0].isspace())
        ):
            style = under[0] + ("^" if over and lines[row - 1][0] == under[0] else "")
            level = levels.setdefault(style, len(levels) + 1)
            yield Head(row - 1 if style.endswith("^") and len(style) == 2 else row, level, title[:_TITLE_LIMIT])
            row += 2
        else:
            row += 1


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}$")


def _tables(lines: Sequence[str]) -> Iterator[Head]:
    """TOML and INI: `[a.b]` and `[[a]]`, outside multi-line strings."""
    quote = ""
    for row, line in enumerate(lines):
        if not quote:
            match = _TABLE.match(line)
            if match:
                yield Head(row, 1, match[1].strip()[:_TITLE_LIMIT])
                continue
        for mark in ('"""', "'''"):
            if quote in {"", mark} and line.count(mark) % 2:
                quote = "" if quote else mark


_TABLE = re.compile(r"\s*\[+([^\[\]\"'=]*|[^\[\]=]*\"[^\"]*\"[^\[\]=]*)\]+\s*(?:[#;].*)?$")


def _keys(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], Iterator[Head]]:
    """Keys at the two outermost depths of indentation."""

    def find(lines: Sequence[str]) -> Iterator[Head]:
        matches = [(row, match) for row, line in enumerate(lines) if (match := pattern.match(line))]
        indents = sorted({len(match[1].expandtabs(4)) for _, match in matches})[:2]
        for row, match in matches:
            indent = len(match[1].expandtabs(4))
            if indent in indents:
                yield Head(row, indents.index(indent) + 1, match[2].strip("\"'")[:_TITLE_LIMIT])

    return find


_YAML_KEY = re.compile(r"( *)([A-Za-z0-9_.$/\"'-][^\s:#{}\[\]]*):(?:\s|$)")
_JSON_KEY = re.compile(r"([ \t]+)\"((?:[^\"\\]|\\.){1,120})\"\s*:")


def _markup(lines: Sequence[str]) -> Iterator[Head]:
    for row, line in enumerate(lines):
        title = _HTML_TITLE.search(line)
        if title:
            text = _TAG.sub("", title[2]).strip()
            if text:
                yield Head(row, int(title[1]), text[:_TITLE_LIMIT])
            continue
        block = _HTML_BLOCK.match(line)
        if block:
            yield Head(row, 7, block[1].lower() + (f"#{block[2]}" if block[2] else ""))


_HTML_TITLE = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.IGNORECASE)
_HTML_BLOCK = re.compile(
    r"\s*<(script|style|template|section|article|main|nav|header|footer|form|table)\b(?:[^>]*?\bid=[\"']([\w-]+))?",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]*>")


def _components(lines: Sequence[str]) -> Iterator[Head]:
    """Vue and Svelte: the blocks at the left margin."""
    for row, line in enumerate(lines):
        match = _COMPONENT.match(line)
        if match:
            yield Head(row, 1, match[1])


_COMPONENT = re.compile(r"<(script|template|style)\b")


def _rules(lines: Sequence[str]) -> Iterator[Head]:
    """CSS: the selector lines of rules outside of any other rule, and of those inside `@media` and its like."""
    depth = 0
    in_comment = False
    opening: int | None = None
    for row, line in enumerate(lines):
        text = line if not in_comment else (line.split("*/", 1)[1] if "*/" in line else "")
        in_comment = in_comment and "*/" not in line
        text = _CSS_COMMENT.sub("", text)
        if "/*" in text:
            text, in_comment = text.split("/*", 1)[0], True
        if opening is None and text.strip() and depth < 2 and not text.strip().startswith("}"):
            opening = row
        if "{" in text and opening is not None:
            title = " ".join("".join(lines[opening : row + 1]).split("{", 1)[0].split())
            if title and depth < 2 and len(title) < _CSS_TITLE:
                yield Head(opening, depth + 1, title[:_TITLE_LIMIT])
        depth = max(0, depth + text.count("{") - text.count("}"))
        if "{" in text or "}" in text or ";" in text:
            opening = None


_CSS_COMMENT = re.compile(r"/\*.*?\*/")
_CSS_TITLE = 400

_FINDERS: MappingProxyType[str, Callable[[Sequence[str]], Iterator[Head]]] = MappingProxyType(
    {
        "markdown": _markdown,
        "rst": _rst,
        "toml": _tables,
        "ini": _tables,
        "yaml": _keys(_YAML_KEY),
        "json": _keys(_JSON_KEY),
        "html": _markup,
        "css": _rules,
        "vue": _components,
        "svelte": _components,
    }
)
