"""The sections of one document, each in its own words: headings with their text, signatures with their docs.

No model is asked and nothing is made up: a section that says nothing has an empty summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from haversack.policy.secrets import without_secrets
from haversack.token_estimate import by_characters
from haversack.types import FileText, Section
from haversack_index.definitions import CHUNKED
from haversack_index.types import Symbol, SymbolKind

_FUNCTIONS = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})
# A document without any heading or definition is one section.
WHOLE = "document"
# Lines of a section looked at for a summary: more than any limit lets through.
MOST_LINES = 200


def sections_of(file: FileText, symbols: Sequence[Symbol], limit: int) -> tuple[Section, ...]:
    """All sections in the order of the text; a summary takes `limit` tokens at most, estimated to err high."""
    chosen = _chosen(symbols)
    if not chosen and not file.lines:
        return ()
    if not chosen:
        text, is_cut = clipped(_prose(file.lines[:MOST_LINES]), limit)
        return (Section(WHOLE, 0, WHOLE, (), text, is_cut, (0, len(file.lines))),)
    seen: dict[str, int] = {}
    found: list[Section] = []
    for order, (symbol, name) in enumerate(zip(chosen, _names(chosen), strict=True)):
        path = (*symbol.container, symbol.name)
        seen[name] = seen.get(name, 0) + 1
        ident = name if seen[name] == 1 else f"{name}~{seen[name]}"
        start, end = symbol.span.start, symbol.span.end
        inner = [each for each in chosen[order + 1 :] if each.span.start < end]
        body = (symbol.signature_end, min((each.span.start for each in inner), default=end))
        text, is_cut = clipped(_said(symbol, file.lines, body, inner), limit)
        found.append(Section(ident, order, symbol.kind.value, path, text, is_cut, (start, end)))
    return tuple(found)


def clipped(text: str, limit: int) -> tuple[str, bool]:
    """The longest head of `text`, cut between words, within `limit` tokens; and whether it was cut."""
    if by_characters(text) <= limit:
        return text, False
    words = re.findall(r"\s*\S+", text)
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if by_characters("".join(words[:middle]) + "…") <= limit:
            low = middle
        else:
            high = middle - 1
    head = "".join(words[:low])
    while not head and limit > 1:  # one word alone is too long: as many of its letters as fit
        low = low or min(len(text), limit)
        head = text[:low]
        if by_characters(head + "…") > limit and low > 1:
            head, low = "", low // 2
    return head + "…", True


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, else the first paragraph; on one line."""
    paragraph = " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())
    end = re.search(r"[.!?](?=\s|$)", paragraph)
    return paragraph[: end.end()] if end else paragraph


def docstring(lines: Sequence[str]) -> str:
    """The string literal that the lines open with, as Python reads documentation."""
    match = _DOCSTRING.match("".join(lines[:MOST_LINES]))
    return _dedented(match[2] or match[4] or "") if match else ""


def comment_above(lines: Sequence[str], row: int) -> str:
    """The comment lines that end right above `row`, without their marks."""
    start = row
    while start > 0 and row - start < MOST_LINES and _COMMENT_LINE.match(lines[start - 1]):
        start -= 1
    return _dedented("".join(_MARK.sub("", line) for line in lines[start:row]).strip())


def comment_at(lines: Sequence[str]) -> str:
    """The comment that a file opens with, a first line for the shell aside."""
    start = 1 if lines and lines[0].startswith("#!") else 0
    end = start
    while end < min(len(lines), MOST_LINES) and _COMMENT_LINE.match(lines[end]):
        end += 1
    return comment_above(lines, end) if end > start else ""


def owners(sections: Sequence[Section], start: int, end: int) -> tuple[int, ...]:
    """Orders of the sections that own one of these lines: the innermost one for each."""
    found: dict[int, None] = {}
    inside = [section for section in sections if section.lines[0] < end and start < section.lines[1]]
    for row in range(start, end):
        holders = [section for section in inside if section.lines[0] <= row < section.lines[1]]
        if holders:
            found[max(holders, key=lambda each: (each.lines[0], each.order)).order] = None
    return tuple(found)


def _names(chosen: Sequence[Symbol]) -> list[str]:
    """What ids are made of. An id stands in rows and comes back as a focus, so it never has a secret in it."""
    names = ["/".join((*symbol.container, symbol.name)) for symbol in chosen]
    every = "\n".join(names)
    return names if without_secrets(every) == every else [without_secrets(name) for name in names]


def _chosen(symbols: Sequence[Symbol]) -> list[Symbol]:
    """Headings, types and functions; not what stands inside a function."""
    ordered = sorted(symbols, key=lambda each: (each.span.start, -each.span.end, each.line, each.depth))
    chosen: list[Symbol] = []
    end_of_function = 0
    for symbol in ordered:
        if symbol.kind not in CHUNKED or symbol.span.start < end_of_function:
            continue
        chosen.append(symbol)
        if symbol.kind in _FUNCTIONS:
            end_of_function = symbol.span.end
    return chosen


def _said(symbol: Symbol, lines: Sequence[str], body: tuple[int, int], inner: Sequence[Symbol]) -> str:
    start, end = body[0], min(body[1], body[0] + MOST_LINES)
    if symbol.kind is SymbolKind.HEADING:
        names = ", ".join(each.name for each in inner if each.container == (*symbol.container, symbol.name))
        return _prose(lines[start:end]) or (f"Holds: {names}." if names else "")
    said = docstring(lines[start:end]) if symbol.language == "python" else ""
    said = said or comment_above(lines, symbol.span.start)
    return "\n".join(filter(None, (symbol.signature, first_sentence(said) if said else "")))


def _prose(lines: Sequence[str]) -> str:
    """Paragraphs with their line ends kept, without what only draws: rules, underlines, comments, tags."""
    kept = (_TAG.sub("", line).rstrip() for line in lines)
    text = "\n".join(line for line in kept if not _RULE.fullmatch(line.strip()))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _dedented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """The paragraphs of prose, each on one line."""
    yield from (" ".join(each.split()) for each in re.split(r"\n\s*\n", _prose(lines)) if each.strip())


_DOCSTRING = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*[rRuUbB]{0,2}(?:(\"{3}|'{3})(.*?)\1|([\"'])(.*?)\3)", re.DOTALL)
_COMMENT_LINE = re.compile(r"\s*(?:#(?!!|\[|include|define|if|end)|//|/\*|\*|--|;)")
_MARK = re.compile(r"^\s*(?:#+|//[/!]?|/\*+!?|\*+/|\*|--|;+)[ \t]?|\s*\*+/\s*$")
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>")
_RULE = re.compile(r"([=\-~^\"'`#*+_.:])\1{2,}|<!--|-->")
