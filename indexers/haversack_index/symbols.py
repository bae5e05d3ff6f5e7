"""Definitions, references and imports of one syntax tree, by one pass of the language's query.

Queries lie in `queries/<language>.scm`. Captures: `@def.<kind>` is a definition with `@name`, perhaps `@body` and
`@container` (a receiver or an object written before the name); `@scope` names what it holds without being a symbol
(an impl block, an extension); `@ref` is a use of a name, `@import` a module as written; `@comment` and `@lead`
(an attribute or decorator standing beside its definition) belong to the definition that follows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tree_sitter import Language, Node, Query, QueryCursor, QueryError, Tree

from haversack_index.definitions import NAME_LIMIT, SCOPE, WORD, Definition, Found, Leading, define, text_of
from haversack_index.parse import load_grammar
from haversack_index.types import Reference, Span, Symbol

# Unfinished matches held at once: no file of 1,100 in 14 languages had 64 of them, a hostile one has thousands.
_MATCH_LIMIT = 1_024


@dataclass(frozen=True, slots=True)
class Extracted:
    definitions: tuple[Definition, ...]  # by start, outer before inner
    references: tuple[Reference, ...]
    imports: tuple[str, ...]


def extract(tree: Tree, data: bytes, path: str, language: str) -> Extracted:
    """Run the language's query once over the tree. Raises ValueError when the query does not fit the grammar."""
    query = _query(language)
    found: dict[int, tuple[int, Found]] = {}
    references: list[Node] = []
    imports: dict[str, None] = {}
    comments: list[Node] = []
    leads: list[Node] = []

    # No progress callback here: with one, tree-sitter 0.26.1 crashes the process in `matches` and in `captures`.
    for index, captures in QueryCursor(query.query, match_limit=_MATCH_LIMIT).matches(tree.root_node):
        kind = query.kinds[index]
        if kind == "ref":
            references += captures["ref"]
        elif kind == "comment":
            comments += captures["comment"]
        elif kind == "lead":
            leads += captures["lead"]
        elif kind == "import":
            for node in captures["import"]:
                imports[text_of(data, node).strip("\"'<>`")] = None
        else:
            node = captures[kind][0]
            for name_node in captures.get("name") or (node,):
                key = name_node.start_byte
                # Two patterns may name the same place: the earlier pattern is the more exact one.
                if key not in found or index < found[key][0]:
                    found[key] = (index, Found(kind, node, name_node, captures))
    definitions = define([item for _, item in found.values()], data, language, Leading(comments, leads, data))
    return Extracted(
        tuple(definitions),
        _refer(references, definitions, data, path),
        tuple(name for name in imports if name),
    )


def to_symbols(extracted: Extracted, path: str, language: str) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(
            definition.name,
            definition.kind,
            Span(path, definition.start, definition.end),
            definition.line,
            definition.signature_end,
            definition.container,
            definition.signature,
            language,
            definition.depth,
        )
        for definition in extracted.definitions
        if definition.kind is not None
    )


@dataclass(frozen=True, slots=True)
class _LanguageQuery:
    query: Query
    kinds: tuple[str, ...]  # by pattern: "ref", "import", "comment", "lead", "scope" or "def.<kind>"


def _fits(grammar: Language, pattern: str) -> bool:
    try:
        Query(grammar, pattern)
    except QueryError:
        return False
    return True


# A pattern starts at the left margin; its further lines are indented or close it.
_PATTERN = re.compile(r"^(?=[(\[])", re.MULTILINE)
_PATTERN_KIND = re.compile(r"@(def\.\w+|scope|ref|import|comment|lead)\b")


# A language whose query is another's and what its own file adds.
_EXTENDS = {"tsx": "typescript"}


def _source(language: str) -> str:
    own = files("haversack_index").joinpath("queries", f"{language}.scm").read_text("utf-8")
    return f"{_source(_EXTENDS[language])}\n{own}" if language in _EXTENDS else own


@cache
def _query(language: str) -> _LanguageQuery:
    grammar = load_grammar(language)
    if grammar is None:
        raise ValueError(f"no grammar for {language}")
    source = _source(language)
    try:
        query = Query(grammar, source)
    except QueryError:
        # Grammars of other ages name some nodes differently: what this one does not know can't match in it either.
        source = "".join(part for part in _PATTERN.split(source) if _fits(grammar, part))
        query = Query(grammar, source)
    kinds: list[str] = []
    encoded = source.encode()
    for index in range(query.pattern_count):
        text = encoded[query.start_byte_for_pattern(index) : query.end_byte_for_pattern(index)].decode()
        names = _PATTERN_KIND.findall(text)
        kinds.append(next((name for name in names if name.startswith("def.") or name == SCOPE), names[0]))
    return _LanguageQuery(query, tuple(kinds))


def _refer(nodes: list[Node], definitions: list[Definition], data: bytes, path: str) -> tuple[Reference, ...]:
    """Uses of names, once for each name within each definition, in the order of the text."""
    defined = {definition.name_byte for definition in definitions}
    starts = [definition.start_byte for definition in definitions]
    seen: set[tuple[str, str]] = set()
    references: list[Reference] = []
    for node in nodes:
        at = node.start_byte
        if at in defined:
            continue
        name = data[at : node.end_byte].decode("utf-8", "replace")
        within = _within(definitions, bisect_right(starts, at) - 1, at)
        if (name, within) in seen or len(name) > NAME_LIMIT or not WORD.search(name):
            continue
        seen.add((name, within))
        references.append(Reference(name, path, node.start_point.row, within))
    return tuple(references)


def _within(definitions: list[Definition], index: int, at: int) -> str:
    definition = definitions[index] if index >= 0 else None
    while definition is not None and definition.end_byte <= at:
        definition = definition.parent
    return ".".join(definition.path) if definition is not None else ""
