"""`haversack doctor`: one line per part that has to work, each with ok or with what to do."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import platformdirs
from rich.table import Table
from rich.text import Text

from haversack.cli.arguments import OK, TO_MEND, Options
from haversack.cli.render import Output
from haversack.types import HaversackError

# Each check imports what it looks at: a part that does not even load is a row, and the others are checked too.
# ruff: noqa: PLC0415

# What the product cannot start without; extras are looked at where their part is.
PACKAGES = (
    "pygls",
    "lsprotocol",
    "tree-sitter",
    "tree-sitter-language-pack",
    "apsw",
    "sqlite-vec",
    "numpy",
    "rank-bm25",
    "charset-normalizer",
    "watchfiles",
)

# The languages whose files are cut at definitions; others are cut in line blocks and need no grammar.
GRAMMAR_SAMPLES = {
    "python": "def f():\n    pass\n",
    "javascript": "function f() {}\n",
    "typescript": "function f(): void {}\n",
    "tsx": "const a = <b/>;\n",
    "go": "package p\nfunc f() {}\n",
    "rust": "fn f() {}\n",
    "java": "class A { void f() {} }\n",
    "c": "int f(void) { return 0; }\n",
    "cpp": "class A { int f(); };\n",
    "csharp": "class A { void F() {} }\n",
    "ruby": "def f\nend\n",
    "php": "<?php function f() {}\n",
    "kotlin": "fun f() {}\n",
    "swift": "func f() {}\n",
    "bash": "f() { :; }\n",
    "lua": "function f() end\n",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One part: `remedy` is empty when it is ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def checks(cache_dir: Path) -> Iterator[Check]:
    """Every check, each guarded: a broken part is a row, never a traceback."""
    for name, check in (
        ("python", _python),
        ("packages", _packages),
        ("sqlite", _sqlite),
        ("vector extension", _vector_extension),
        ("embedding model", _embedding_model),
        ("grammars", _grammars),
        ("token counter", _token_counter),
        ("cache folder", lambda: _cache_folder(cache_dir)),
        ("memories", _memories),
        ("git", _git),
    ):
        yield _guarded(name, check)


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - the doctor's work is to report whatever is broken
        return Check(name, False, f"{type(error).__name__}: {error}", "Install Haversack again, with its dependencies.")


def _python() -> Check:
    version = platform.python_version()
    ok = sys.version_info >= (3, 11)
    return Check("python", ok, f"{version} at {sys.executable}", "" if ok else "Install Python 3.11 or newer.")


def _packages() -> Check:
    found: list[str] = []
    missing: list[str] = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check("packages", False, "missing: " + ", ".join(missing), "pip install " + " ".join(missing))
    return Check("packages", True, ", ".join(found))


def _sqlite() -> Check:
    import apsw

    connection = apsw.Connection(":memory:")
    cast("Any", connection).execute("CREATE VIRTUAL TABLE probe USING fts5(body, content='', contentless_delete=1)")
    connection.close()
    return Check("sqlite", True, f"{apsw.sqlite_lib_version()} with full-text search (apsw {apsw.apsw_version()})")


def _vector_extension() -> Check:
    import apsw
    import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]

    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        version = next(cast("Any", connection).execute("SELECT vec_version()"))[0]
    except apsw.Error as error:
        return Check(
            "vector extension",
            False,
            f"sqlite-vec does not load: {error}",
            "Search still works (slower, by exact scan). Reinstall sqlite-vec for this platform.",
        )
    finally:
        connection.close()
    return Check("vector extension", True, f"sqlite-vec {version}")


def _embedding_model() -> Check:
    from haversack_index.embed import load_embedder

    embedder = load_embedder("static")
    same = float(embedder.embed_query("read a file") @ embedder.embed_query("open the file and read it"))
    other = float(embedder.embed_query("read a file") @ embedder.embed_query("matrix eigenvalue solver"))
    ok = same > other
    return Check(
        "embedding model",
        ok,
        f"{embedder.id}, {embedder.dim} dimensions, built in",
        "" if ok else "The shipped table is damaged: reinstall haversack.",
    )


def _grammars() -> Check:
    from haversack_index.chunk import parse_file

    broken = [
        language
        for language, sample in GRAMMAR_SAMPLES.items()
        if not parse_file(f"sample.{language}", sample, language).chunks
        or parse_file(f"sample.{language}", sample, language).note
    ]
    if broken:
        return Check(
            "grammars",
            False,
            "not working: " + ", ".join(broken),
            "Their files are cut in line blocks. Reinstall tree-sitter-language-pack==0.13.0.",
        )
    return Check("grammars", True, f"{len(GRAMMAR_SAMPLES)} languages parse: " + ", ".join(GRAMMAR_SAMPLES))


def _token_counter() -> Check:
    from haversack.tokens import counter

    count = counter("o200k")
    n_tokens = count.count("def hello(): return 'world'")
    return Check(
        "token counter", True, f"{count.name}, {'exact' if count.exact else 'estimated'} ({n_tokens} for a sample)"
    )


def _cache_folder(cache_dir: Path) -> Check:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=cache_dir) as probe:
            probe.write(b"probe")
    except OSError as error:
        return Check(
            "cache folder",
            False,
            f"{cache_dir}: {error.strerror or error}",
            "Set XDG_CACHE_HOME to a folder you can write, or pass --cache-dir.",
        )
    free = shutil.disk_usage(cache_dir).free
    ok = free > 200_000_000
    return Check(
        "cache folder",
        ok,
        f"{cache_dir} ({free / 1e9:.1f} GB free)",
        "" if ok else "Free some space: an index takes about as much as the source it covers.",
    )


def _memories() -> Check:
    """Opened as a session opens them; a session that cannot goes on without."""
    import apsw

    from haversack.memory import MemoryStore, users_file

    file = users_file()
    remedy = "Questions are answered without memories. Make the file and its folder yours to write, or move it aside."
    try:
        store = MemoryStore(file)
        try:
            user, project, projects = store.count()
        finally:
            store.close()
        size = file.stat().st_size
    except HaversackError as error:
        return Check("memories", False, f"{file}: {error.message}", error.remedy or remedy)
    except (OSError, apsw.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Check("memories", False, f"{file}: {why}", remedy)
    folders = "1 folder" if projects == 1 else f"{projects:,} folders"
    notes = f"{user:,} of the user, {project:,} of {folders}"
    return Check("memories", True, f"{file} ({notes}, {size / 1e3:,.0f} kB)")


def _git() -> Check:
    path = shutil.which("git")
    if path is None:
        return Check("git", False, "not found", "Diffs, authors and history are left out until git is on PATH.")
    return Check("git", True, os.path.realpath(path))


def run(options: Options) -> int:
    """Print every check; 3 when one needs mending."""
    found = list(checks(options.cache_dir or platformdirs.user_cache_path("haversack")))
    if options.json:
        print(json.dumps([asdict(check) for check in found], ensure_ascii=False))
    else:
        _print(found)
    return OK if all(check.ok for check in found) else TO_MEND


def _print(found: list[Check]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for check in found:
        mark = Text("ok", style="green") if check.ok else Text("MEND", style="bold red")
        detail = Text(check.detail)
        if check.remedy:
            detail.append(f"\n{check.remedy}", style="yellow")
        table.add_row(mark, check.name, detail)
    Output().print(table)
