"""Text to syntax tree: where grammars come from, and a parse that always ends.

Grammars are native code of many authors. Parsing is bounded in size, time and depth, and no tree is ever turned
into its text form: that recursion kills the process on deep input.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import tree_sitter
from tree_sitter import Language, Parser, Tree

# Half a second of processor time parses about 3 MB of ordinary code; what takes longer is not ordinary.
TIME_LIMIT_S = 0.5

# Files over a megabyte are generated or data; whole definitions in them serve nobody.
SIZE_LIMIT = 1_000_000

# Written code nests below 100; recursion in C starts to fail near 20,000.
DEPTH_LIMIT = 1_000

# Children of an error node are one flat list, and a query over it takes the square of its length:
# 0.03 s for 5,000, a minute for 200,000.
_BROKEN_LIMIT = 5_000

# A parse that reads in pieces of this size lets other threads in: longest stall 13 ms instead of the whole parse.
_READ_BYTES = 65_536

# The Kotlin scanner keeps one byte a string it is inside of, and ends the process when 1,024 do not suffice.
_INTERPOLATION_LIMIT = 500
_INTERPOLATION = re.compile(rb"\$\{|\}")

# Grammars that loop for ever inside C, where no progress callback is reached.
NEVER_LOADED = frozenset({"cobol"})


class ParseFailure(Exception):
    """No tree, for the reason in the message: "too large", "parse time", "too deep", "too broken", "no grammar"."""


class GrammarProvider(Protocol):
    """One source of grammars. `load` returns None when it has no grammar of that name."""

    @property
    def name(self) -> str: ...
    def load(self, grammar: str) -> Language | None: ...


def parse_tree(data: bytes, grammar: str, time_limit_s: float = TIME_LIMIT_S, size_limit: int = SIZE_LIMIT) -> Tree:
    """Parse UTF-8 bytes. Raises ParseFailure when a limit is passed or there is no grammar."""
    if len(data) > size_limit:
        raise ParseFailure("too large")
    language = load_grammar(grammar)
    if language is None:
        raise ParseFailure("no grammar")
    if grammar == "kotlin" and _interpolation_depth(data) > _INTERPOLATION_LIMIT:
        raise ParseFailure("too deep")
    # Processor time, not the clock: a busy machine must not change what a file is cut into.
    deadline = time.thread_time() + time_limit_s
    view = memoryview(data)

    def read(offset: int, _point: tree_sitter.Point) -> bytes:
        return bytes(view[offset : offset + _READ_BYTES])

    def late(_offset: int, _error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        tree = Parser(language).parse(read, progress_callback=late)
    except ValueError as error:
        raise ParseFailure("parse time") from error
    trouble = trouble_of(tree)
    if trouble:
        raise ParseFailure(trouble)
    return tree


def trouble_of(tree: Tree) -> str:
    """ "too deep" or "too broken" when a walk or a query over the tree would take for ever, else empty.

    Subtrees with fewer nodes than could reach the limit are passed over, so this costs next to nothing.
    """
    cursor = tree.walk()
    depth = 0
    while (node := cursor.node) is not None:
        n_descendants = node.descendant_count
        if node.is_error and n_descendants > _BROKEN_LIMIT and node.child_count > _BROKEN_LIMIT:
            return "too broken"
        if n_descendants > DEPTH_LIMIT - depth and cursor.goto_first_child():
            depth += 1
            if depth > DEPTH_LIMIT:
                return "too deep"
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return ""
            depth -= 1
    return ""


def _interpolation_depth(data: bytes) -> int:
    """How deep `${` nests, braces of code not told from braces of strings: an upper bound is all that is needed."""
    depth = deepest = 0
    for match in _INTERPOLATION.finditer(data):
        depth = max(0, depth + (1 if match[0] == b"${" else -1))
        deepest = max(deepest, depth)
    return deepest


@dataclass(frozen=True, slots=True)
class SingleWheels:
    """The `tree_sitter_<language>` packages: newest grammars, used for each language whose wheel is installed."""

    name: str = "single wheel"

    def load(self, grammar: str) -> Language | None:
        package = _WHEEL_NAMES.get(grammar, f"tree_sitter_{grammar}")
        if find_spec(package) is None:
            return None
        module = import_module(package)
        entry = getattr(module, f"language_{grammar}", None) or getattr(module, "language", None)
        return _wrap(entry()) if entry is not None else None


@dataclass(frozen=True, slots=True)
class LanguagePack:
    """tree-sitter-language-pack 0.13: the last release with its grammars inside the wheel."""

    name: str = "language pack"

    def load(self, grammar: str) -> Language | None:
        if find_spec("tree_sitter_language_pack") is None:
            return None
        pack = import_module("tree_sitter_language_pack")
        try:
            return _wrap(pack.get_binding(grammar))
        except LookupError:
            return None


@dataclass(frozen=True, slots=True)
class LanguagesLibrary:
    """The shared library of tree-sitter-languages 1.10, read through ctypes: its own API fails with newer parsers."""

    name: str = "tree-sitter-languages"

    def load(self, grammar: str) -> Language | None:
        spec = find_spec("tree_sitter_languages")
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = Path(next(iter(spec.submodule_search_locations)))
        path = next((path for path in sorted(folder.glob("languages.*")) if path.suffix in _LIBRARY_SUFFIXES), None)
        if path is None:
            return None
        entry = getattr(ctypes.PyDLL(str(path)), f"tree_sitter_{_LIBRARY_NAMES.get(grammar, grammar)}", None)
        if entry is None:
            return None
        # A pointer returned as a C int is cut to 32 bits, and using it crashes the process.
        entry.restype = ctypes.c_void_p
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype = ctypes.py_object
        capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return _wrap(capsule(entry(), b"tree_sitter.Language", None))


def _wrap(capsule: object) -> Language:
    """Grammars come as capsules named `tree_sitter.Language`; plain integers are the deprecated way."""
    return Language(capsule)


PROVIDERS: tuple[GrammarProvider, ...] = (SingleWheels(), LanguagePack(), LanguagesLibrary())

_LIBRARY_SUFFIXES = frozenset({".so", ".dylib", ".dll", ".pyd"})
_WHEEL_NAMES = MappingProxyType({"csharp": "tree_sitter_c_sharp", "tsx": "tree_sitter_typescript"})
_LIBRARY_NAMES = MappingProxyType({"csharp": "c_sharp"})
_load_lock = threading.Lock()


def load_grammar(grammar: str) -> Language | None:
    """The grammar from the first provider that has it, loaded once a process; None when nobody has it."""
    with _load_lock:
        return _load(grammar)


@cache
def _load(grammar: str) -> Language | None:
    if not grammar or grammar in NEVER_LOADED:
        return None
    for provider in PROVIDERS:
        try:
            language = provider.load(grammar)
        except (ImportError, OSError, ValueError, TypeError, AttributeError):
            # A broken or too new grammar of one provider must not hide the next provider's good one.
            continue
        if language is not None:
            return language
    return None
