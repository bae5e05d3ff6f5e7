"""Lines of other files at a cursor: who is imported, of what type the receiver is, and what is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.gathering import World

from haversack.fim.crossfile import find
from haversack.fim.crossfile.imports import Import, Paths, imports_of, resolve
from haversack.fim.crossfile.receiver import bases_of, receiver_of, types_of
from haversack.fim.nouns import Cursor, Found
from haversack.fim.ring import RecentPlaces
from haversack.tokens import counter
from haversack.types import Settings, Source


@pytest.mark.parametrize(
    ("language", "path", "text", "files", "expected"),
    [
        ("python", "app/main.py", "from .store import (Store,\n  load as l)\n", ["app/store.py"], ["app/store.py"]),
        ("python", "app/sub/a.py", "from .. import store\n", ["app/store.py"], ["app/store.py"]),
        ("python", "app/a.py", "import lib.tools as t, os\n", ["src/lib/tools.py"], ["src/lib/tools.py"]),
        ("python", "app/a.py", "from lib import tools\n", ["lib/tools.py"], ["lib/tools.py"]),
        ("python", "app/a.py", "import lib\n", ["lib/__init__.py"], ["lib/__init__.py"]),
        ("typescript", "src/a.ts", "import { b } from './b.js'\n", ["src/b.ts"], ["src/b.ts"]),
        ("typescript", "src/a.ts", "import type { b } from '@/lib/b'\n", ["src/lib/b.ts"], ["src/lib/b.ts"]),
        ("javascript", "lib/a.js", "const { x } = require('../util')\n", ["util/index.js"], ["util/index.js"]),
        ("go", "cmd/a.go", 'import (\n\t"fmt"\n\td "x.com/m/doc"\n)\n', ["doc/md.go", "doc/m_test.go"], ["doc/md.go"]),
        ("rust", "src/main.rs", "use crate::w::{J, p::P};\n", ["src/w.rs", "src/w/p.rs"], ["src/w.rs", "src/w/p.rs"]),
        ("rust", "src/walk.rs", "mod pool;\n", ["src/walk/pool.rs"], ["src/walk/pool.rs"]),
        ("java", "src/a/A.java", "import static b.c.D.of;\n", ["src/b/c/D.java"], ["src/b/c/D.java"]),
        ("c", "src/a.c", '#include "util.h"\n#include <stdio.h>\n', ["src/util.h", "x/util.h"], ["src/util.h"]),
        ("cpp", "src/a.cc", "#include <fmt/core.h>\n", ["include/fmt/core.h"], ["include/fmt/core.h"]),
    ],
)  # fmt: skip
def test_an_import_leads_to_its_files(
    language: str, path: str, text: str, files: list[str], expected: list[str]
) -> None:
    paths = Paths([path, *files])
    found = [one for each in imports_of(text, language) for one in resolve(each, path, language, paths)]
    assert found == expected


def test_names_taken_from_a_module_are_those_it_has() -> None:
    assert imports_of("from .a import (b as c, d)\n", "python") == (Import(".a", ("b", "d")),)
    assert imports_of("import { b as c, d } from './a'", "typescript") == (Import("./a", ("b", "d")),)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["def run(store: Store) -> None:\n", "    store.\n"], ("Store",)),
        (["store = Store(1)\n", "store.\n"], ("Store",)),
        (["class Job(Base):\n", "    def run(self):\n", "        self.\n"], ("Job", "Base")),
        (["const store = new Store()\n", "store.\n"], ("Store",)),
        (["class A extends B {\n", "  run() {\n", "    this.\n"], ("A", "B")),
        (["func (s *Store) Run() {\n", "\ts.\n"], ("Store",)),
        (["fn run(store: &mut Store) {\n", "    store.\n"], ("Store",)),
        (["Store store = open();\n", "store.\n"], ("Store",)),
        (["void run(Store *store) {\n", "  store->\n"], ("Store",)),
    ],
)
def test_the_receiver_has_the_type_that_the_lines_above_give_it(lines: list[str], expected: tuple[str, ...]) -> None:
    line = len(lines) - 1
    assert types_of(receiver_of(lines[line].rstrip("\n")), lines, line) == expected


def test_bases_are_read_from_the_header() -> None:
    assert bases_of("class A(B, c.D)") == ("B", "D")
    assert receiver_of("x = plain") == ""


STORE = """class Base:
    def flush_everything(self, hard: bool) -> None:
        return None


class Store(Base):
    def read_entry(self, key: str) -> bytes:
        return b""
"""
MAIN = "from store import Store\n\n\ndef run(store: Store) -> None:\n    store.\n"


def _find(world: World, text: str, ring: RecentPlaces | None = None, most: int = 500) -> Found:
    workspace = world.workspace()
    world.open("ws", "main.py", text)
    workspace = world.workspace()
    file = workspace.read("ws", "main.py")
    assert file is not None
    line = len(file.lines) - 1
    column = len(file.lines[line].rstrip("\n"))
    return find(
        Cursor(world.uri("ws", "main.py"), file, line, column, "python"), workspace, ring, most, counter("o200k")
    )


def _served(found: Found) -> str:
    return "".join(
        line
        for each in found.candidates
        if each.file is not None
        for start, end in each.forms[0].spans
        for line in each.file.lines[start:end]
    )


def test_members_of_the_receiver_and_of_its_bases_come(tmp_path: Path) -> None:
    others = "".join(f"def other_{n}(argument: int) -> int:\n    return {n}\n\n\n" for n in range(40))
    base, store = STORE.split("\n\n\n")
    files = {"base.py": f"{others}{base}\n", "store.py": f"from base import *\n\n\n{others}{store}", "main.py": MAIN}
    found = _find(World(tmp_path, {"ws": files}), MAIN, most=90)
    assert found.candidates[0].source is Source.SYMBOLS
    assert "read_entry" in _served(found)
    assert "flush_everything" in _served(found)
    assert found.candidates[0].origins == ("ws/store.py",)
    assert "before the cursor's dot" in found.candidates[0].why


def test_settings_leave_out_headers_lines_alike_and_places(tmp_path: Path) -> None:
    use = "from store import Store\n\n\ndef other(store: Store) -> None:\n    key = 'a'\n    store.read_entry(key)\n"
    files = {"store.py": STORE, "use.py": use, "far/price.py": "def price_of(order):\n    return 1\n", "main.py": MAIN}
    ring = RecentPlaces()
    ring.viewed("ws", "far/price.py", 0)

    def served(name: str, **changes: Any) -> tuple[set[Source], str]:
        found = _find(World(tmp_path / name, {"ws": files}, Settings(**changes)), MAIN, ring)
        return {each.source for each in found.candidates}, _served(found)

    sources, text = served("all")
    assert sources >= {Source.SYMBOLS, Source.HYBRID}
    assert "price_of" in text
    assert Source.SYMBOLS not in served("no-headers", fim_definitions=False)[0]
    assert Source.HYBRID not in served("no-alike", fim_similar=False)[0]
    assert "price_of" not in served("no-places", fim_recent=False)[1]


def test_an_unsaved_buffer_answers_for_its_file(tmp_path: Path) -> None:
    world = World(tmp_path, {"ws": {"store.py": STORE, "main.py": MAIN}})
    world.open("ws", "store.py", STORE.replace("read_entry", "read_record"))
    served = _served(_find(world, MAIN))
    assert "read_record" in served
    assert "read_entry" not in served


def test_never_a_line_of_the_cursors_own_file_nor_one_twice(tmp_path: Path) -> None:
    found = _find(World(tmp_path, {"ws": {"store.py": STORE, "main.py": MAIN}}), MAIN)
    assert found.candidates
    seen: set[tuple[str, int]] = set()
    for each in found.candidates:
        assert each.file is not None
        assert each.file.path != "main.py"
        lines = {(each.file.path, number) for start, end in each.forms[0].spans for number in range(start, end)}
        assert not lines & seen
        seen |= lines


def test_a_place_edited_lately_counts_though_nothing_imports_it(tmp_path: Path) -> None:
    other = "def price_of(order):\n    return order.total_amount\n"
    world = World(tmp_path, {"ws": {"deep/other.py": other, "main.py": "x"}})
    text = "def cost(order):\n    return order.\n"
    assert "price_of" not in _served(_find(world, text))
    ring = RecentPlaces()
    ring.edited("ws", "deep/other.py", 0)
    assert "price_of" in _served(_find(world, text, ring))


def test_room_is_kept(tmp_path: Path) -> None:
    many = "".join(f"def function_number_{n}(argument: int) -> int:\n    return {n}\n\n\n" for n in range(300))
    world = World(tmp_path, {"ws": {"store.py": many, "main.py": MAIN}})
    served = _served(_find(world, MAIN, most=200))
    assert 300 < len(served) < 200 * 3.7
    assert _find(world, MAIN, most=0) == Found()


def test_the_ring_keeps_places_apart_newest_first() -> None:
    ring = RecentPlaces(most=2)
    ring.viewed("ws", "a.py", 100)
    ring.edited("ws", "b.py", 5)
    ring.viewed("ws", "b.py", 9)
    assert [(place.path, place.edited) for place in ring.places()] == [("b.py", True), ("a.py", False)]
    ring.viewed("ws", "c.py", 0)
    assert [place.path for place in ring.places()] == ["c.py", "b.py"]
