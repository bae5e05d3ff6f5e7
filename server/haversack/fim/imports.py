"""The imports of the file at hand where they are above the prefix: without them a model guesses at names.

Only the lines above the prefix are parsed. They stay the same while somebody types below them, so a parse serves until
the prefix begins elsewhere.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from haversack.fim.nouns import Cursor
from haversack_index.languages import grammar_of
from haversack_index.parse import ParseFailure, parse_tree

# What holds imports among the statements of a file, by the names that grammars give them.
STATEMENTS = frozenset(
    {
        "import_statement",  # Python, TypeScript, JavaScript
        "import_from_statement",
        "future_import_statement",
        "import_declaration",  # Go, Java, Swift
        "import_header",  # Kotlin
        "import_list",
        "import",
        "use_declaration",  # Rust
        "extern_crate_declaration",
        "mod_item",
        "preproc_include",  # C, C++
        "using_declaration",
        "using_directive",  # C#
        "namespace_use_declaration",  # PHP
        "package_clause",
        "package_declaration",
    }
)
# Lines of one statement that are taken; longer ones are no list of names.
LONGEST = 60
# Lines that are looked at: imports stand at the top.
MOST_LINES = 2_000


class Counter(Protocol):
    def count(self, text: str) -> int: ...


def imports_above(cursor: Cursor, first: int, most: int, counter: Counter) -> str:
    """Import statements of the lines before `first`, whole and in order, as many as fit into `most` tokens; "" where
    there are none or the language has no grammar here."""
    if first <= 0 or most <= 0:
        return ""
    head = "".join(cursor.file.lines[: min(first, MOST_LINES)])
    taken: list[str] = []
    for statement in _statements(head, cursor.language):
        cost = counter.count(statement)
        if cost > most:
            break
        most -= cost
        taken.append(statement)
    return "".join(taken)


@lru_cache(maxsize=64)
def _statements(head: str, language: str) -> tuple[str, ...]:
    grammar = grammar_of(language)
    if not grammar:
        return ()
    try:
        tree = parse_tree(head.encode("utf-8", "surrogatepass"), grammar)
    except ParseFailure:
        return ()
    lines = head.split("\n")
    found: list[str] = []
    end = 0
    for node in tree.root_node.children:
        start, stop = node.start_point.row, node.end_point.row + (node.end_point.column > 0)
        is_body = node.type == "mod_item" and node.child_by_field_name("body") is not None
        if node.type in STATEMENTS and not is_body and stop - start <= LONGEST:
            found.extend(f"{line}\n" for line in lines[max(start, end) : stop])
            end = max(end, stop)
    return tuple(found)
