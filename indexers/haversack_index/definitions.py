"""Definitions from the nodes that a query found: names, extents, containers, kinds and one-line signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType

from tree_sitter import Node

from haversack_index.types import SymbolKind

# What a reader takes in at a glance; longer headers are cut, the file still holds the whole.
_SIGNATURE_LIMIT = 200

# A name longer than this is text that a broken parse took for a name.
NAME_LIMIT = 200

# A header longer than this is data; 2 KB of it fill a signature ten times over.
_HEADER_BYTES = 2_000

# Declarators nest as deep as people can read: pointer to function returning pointer to array.
_DECLARATOR_DEPTH = 12

SCOPE = "scope"
_FUNCTION_LIKE = frozenset({SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTRUCTOR})

# What turns a function inside it into a method; None is a bare scope, such as an impl block.
_CLASS_LIKE = frozenset(
    {SymbolKind.CLASS, SymbolKind.INTERFACE, SymbolKind.STRUCT, SymbolKind.TRAIT, SymbolKind.ENUM, None}
)

# Definitions that stand on their own as chunks; the others are lines in their neighbourhood.
CHUNKED = _CLASS_LIKE | _FUNCTION_LIKE | {SymbolKind.NAMESPACE, SymbolKind.MODULE, SymbolKind.HEADING}

# Values, which are nobody's business outside when they stand inside a function.
_VALUES = frozenset({SymbolKind.VARIABLE, SymbolKind.FIELD, SymbolKind.CONSTANT})

# Nodes around a definition that belong to it: decorators, `export`, `template <...>`, `const` before a name.
_WRAPPERS = frozenset(
    {
        "decorated_definition",
        "export_statement",
        "ambient_declaration",
        "variable_declarator",
        "expression_statement",
        "assignment_expression",
        "template_declaration",
        "type_definition",
        "declaration",
    }
)

# Wrappers that may hold several definitions: they belong to one only when it is alone in them.
_LISTS = frozenset(
    {"lexical_declaration", "variable_declaration", "type_declaration", "const_declaration", "var_declaration"}
)

_CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor", "initialize", "__construct"})

# The query's kinds that are not kinds of symbols.
_KINDS = MappingProxyType({"default": SymbolKind.FUNCTION, "declaration": SymbolKind.VARIABLE})

# In these a typedef names a type without holding its members.
_DECLARATOR_LANGUAGES = frozenset({"c", "cpp"})

# Where capitals mean "exported", "a module" or nothing, rather than "constant".
_CASELESS = frozenset({"go", "csharp", "lua", "kotlin", "swift"})

# Objects whose members are the file's own: `exports.run = ...` defines `run`.
_FILE_ITSELF = frozenset({"exports", "module", "module.exports", "this", "self"})

_SPACES = re.compile(r"\s+")
WORD = re.compile(r"\w")
_TEMPLATE = re.compile(r"(?<!operator)(?<!operator<)<.*>")


@dataclass(slots=True)
class Definition:
    """A definition while the tree is at hand. Rows are lines; `end` is exclusive. `kind` None is a bare scope."""

    name: str
    kind: SymbolKind | None
    start: int
    end: int
    line: int
    signature_end: int
    signature: str
    start_byte: int
    end_byte: int
    name_byte: int
    container: tuple[str, ...]  # enclosing names, outermost first
    parent: Definition | None = None
    path: tuple[str, ...] = ()  # names of all that encloses it and its own
    depth: int = 0
    comment_start: int = 0  # first line of the comments that belong to it

    @property
    def chunked(self) -> bool:
        return self.kind in CHUNKED


@dataclass(frozen=True, slots=True)
class Found:
    kind: str
    node: Node
    name: Node
    captures: dict[str, list[Node]]


class Leading:
    """Comments and attributes by the place where they end, to find what stands right before a definition."""

    def __init__(self, comments: list[Node], leads: list[Node], data: bytes) -> None:
        self._data = data
        self._comments = {_end_row(node): node for node in comments}
        self._leads = {node.end_byte: node for node in leads}

    def lead_start(self, node: Node) -> int:
        """The first line of the attributes before the node, else its own first line."""
        row = node.start_point.row
        if not self._leads:
            return row
        start = node.start_byte
        while True:
            before = start
            while before and self._data[before - 1 : before].isspace():
                before -= 1
            lead = self._leads.get(before)
            if lead is None:
                return row
            start, row = lead.start_byte, lead.start_point.row

    def comment_start(self, row: int) -> int:
        """The first line of the comments that end right above `row`, else `row`."""
        while True:
            node = self._comments.get(row)
            if node is None or node.start_point.row >= row:
                return row
            line_start = self._data.rfind(b"\n", 0, node.start_byte) + 1
            if self._data[line_start : node.start_byte].strip():
                return row
            row = node.start_point.row


def define(found: list[Found], data: bytes, language: str, leading: Leading) -> list[Definition]:
    found.sort(key=lambda item: (item.node.start_byte, -item.node.end_byte, item.name.start_byte))
    definitions: list[Definition] = []
    stack: list[Definition] = []
    for item in found:
        while stack and stack[-1].end_byte <= item.node.start_byte:
            stack.pop()
        parent = stack[-1] if stack else None
        if parent is not None and parent.start_byte == item.node.start_byte and parent.end_byte == item.node.end_byte:
            parent = parent.parent
        definition = _definition(item, parent, data, language, leading)
        if definition is None:
            continue
        definitions.append(definition)
        if definition.kind is not SymbolKind.TYPE or language not in _DECLARATOR_LANGUAGES:
            stack.append(definition)
    return definitions


def _definition(
    item: Found, parent: Definition | None, data: bytes, language: str, leading: Leading
) -> Definition | None:
    """None when it has no usable name or is a value inside a function."""
    node, captures = item.node, item.captures
    name_node, is_function = _declared(item.name) if language in _DECLARATOR_LANGUAGES else (item.name, False)
    *qualifiers, name = (
        _names(item.kind, text_of(data, name_node)) if "name" in captures or item.kind != SCOPE else [""]
    )
    if not name and item.kind != SCOPE:
        return None
    own = (*_receiver(data, captures["container"][0]), *qualifiers) if "container" in captures else tuple(qualifiers)
    kind = _kind("def.function" if is_function else item.kind, name, parent, own, language)
    if parent is not None and parent.kind in _FUNCTION_LIKE and (kind in _VALUES or item.kind == "def.declaration"):
        return None
    holder = parent
    if kind is SymbolKind.PROPERTY and parent is not None and parent.kind is SymbolKind.CONSTRUCTOR:
        holder = parent.parent  # a constructor's promoted parameter is a property of its class
    outer = _outer(node)
    start = min(leading.lead_start(outer), leading.lead_start(node))
    end = _end_row(outer)
    body = captures.get("body")
    header_row, header_byte = _header_end(body[0]) if body else (end, outer.end_byte)
    container = (holder.path if holder is not None else ()) + own
    return Definition(
        name=name,
        kind=kind,
        start=start,
        end=end,
        line=name_node.start_point.row,
        signature_end=min(max(header_row, start + 1), end),
        signature=_signature(data[outer.start_byte : min(header_byte, outer.start_byte + _HEADER_BYTES)], name),
        start_byte=node.start_byte,
        end_byte=node.end_byte,
        name_byte=name_node.start_byte,
        container=container,
        parent=parent,
        path=(*container, name) if name else container,
        depth=holder.depth + (holder.kind is not None) if holder is not None else 0,
        comment_start=leading.comment_start(start),
    )


def _kind(
    captured: str, name: str, parent: Definition | None, own: tuple[str, ...], language: str
) -> SymbolKind | None:
    if captured == SCOPE:
        return None
    word = captured.removeprefix("def.")
    kind = _KINDS.get(word) or SymbolKind(word)
    in_class = parent is not None and (parent.kind in _CLASS_LIKE or (language == "ruby" and bool(parent.path)))
    if kind is SymbolKind.FUNCTION and (own or in_class):
        kind = SymbolKind.METHOD
    if kind is SymbolKind.METHOD:
        holder = own[-1] if own else parent.path[-1] if parent is not None and parent.path else ""
        return SymbolKind.CONSTRUCTOR if name in _CONSTRUCTORS or name == holder else kind
    if kind in {SymbolKind.VARIABLE, SymbolKind.FIELD} and name.isupper() and language not in _CASELESS:
        return SymbolKind.CONSTANT
    return kind


def _outer(node: Node) -> Node:
    """The node with the wrappers that belong to it alone."""
    while (above := node.parent) is not None:
        if above.type not in _WRAPPERS and not (above.type in _LISTS and above.named_child_count == 1):
            break
        node = above
    return node


def _declared(node: Node) -> tuple[Node, bool]:
    """The name inside a C declarator such as `*(*name[3])(int)`, and whether what it names is a function."""
    is_function = False
    for _ in range(_DECLARATOR_DEPTH):
        inner = node.child_by_field_name("declarator")
        if node.type == "function_declarator":
            is_function = inner is not None and inner.type != "parenthesized_declarator"
        if inner is None and node.type in {"parenthesized_declarator", "reference_declarator"}:
            inner = node.named_child(0)
        if inner is None:
            break
        node = inner
    return node, is_function


def _header_end(body: Node) -> tuple[int, int]:
    """First line after the header, and the byte where the header ends: before `{`, else before the body."""
    for index in range(min(2, body.child_count)):
        child = body.child(index)
        if child.type == "{":
            return child.start_point.row + 1, child.start_byte
    before = body.prev_sibling
    while before is not None and before.is_extra:
        before = before.prev_sibling
    if before is None:
        return body.start_point.row + 1, body.start_byte
    return before.end_point.row + 1, before.end_byte


def _end_row(node: Node) -> int:
    """The first line after the node: a node may end at the start of the next line."""
    row, column = node.end_point
    return max(row + (column > 0), node.start_point.row + 1)


def _signature(header: bytes, name: str) -> str:
    text = _SPACES.sub(" ", header.decode("utf-8", "replace")).strip()
    text = text.removesuffix("=>").rstrip(" {:=;") or text
    if name not in text:
        text = f"{text} {name}"  # `typedef struct { ... } name` says it only after its body
    return text if len(text) <= _SIGNATURE_LIMIT else text[: _SIGNATURE_LIMIT - 1] + "…"


def _names(captured: str, text: str) -> list[str]:
    """Qualifiers and the name as searched for: quotes, symbols' colons and template arguments are off."""
    if captured == "def.default":
        return ["default"]
    if len(text) > NAME_LIMIT:
        return [""]
    text = _SPACES.sub(" ", text.strip("\"'`"))
    if text.startswith(":"):
        text = text.lstrip(":")
    if "<" in text:
        text = _TEMPLATE.sub("", text)
    if captured == SCOPE:
        return text.split(".")
    return text.split("::") if "::" in text else [text]


def _receiver(data: bytes, node: Node) -> list[str]:
    """What stands before the name: `X.prototype` is X, `*List[T]` is List, `exports` is the file itself."""
    text = text_of(data, node)
    if text in _FILE_ITSELF or len(text) > NAME_LIMIT:
        return []
    text = text.split("[", 1)[0].strip("*& ()")
    return [part for part in text.removesuffix(".prototype").split(".") if part and part not in _FILE_ITSELF]


def text_of(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")
