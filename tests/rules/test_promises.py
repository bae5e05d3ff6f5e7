"""What the architecture promises and a compiler would not notice, read from the source itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from functools import cache
from pathlib import Path

import pytest

from haversack.config import SETTINGS, page
from haversack.types import CompactTier, Outcome, Reason, Settings

REPOSITORY = Path(__file__).parents[2]
SERVER = REPOSITORY / "server" / "haversack"
INDEX = REPOSITORY / "indexers" / "haversack_index"
SOURCES = sorted([*SERVER.rglob("*.py"), *INDEX.rglob("*.py")])

# Modules that open connections, or exist to.
NETWORK = frozenset({"http", "urllib.request", "urllib3", "requests", "httpx", "aiohttp", "websockets"}) | frozenset(
    {"socket", "socketserver", "ssl", "ftplib", "smtplib"}
)
# A file is read in one sitting. Types are the exception: one page for all nouns is what makes them easy to find.
MAX_LINES = 400
UNMEASURED = frozenset({SERVER / "types.py"})
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "common", "misc", "base"})


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports at run time or for types, at any depth of nesting."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(path: Path) -> Iterator[str]:
    """The last name of everything a file calls: `splitlines` for `text.splitlines()`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def arguments(path: Path) -> Iterator[ast.arg]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.arg))


def _names_bytes(argument: ast.arg) -> bool:
    return argument.annotation is not None and "bytes" in ast.unparse(argument.annotation)


def test_there_is_source_to_read() -> None:
    """The checks below look at real files."""
    assert {SERVER / "mark.py", SERVER / "outbound.py", INDEX / "store.py"} <= set(SOURCES)


def test_only_the_gate_makes_marked() -> None:
    """Nothing gets past `mark`, since nothing else can make what the later stages take."""
    makers = {name_of(path) for path in SOURCES if "Marked" in calls(path)}
    assert makers == {"server/haversack/mark.py"}


def test_only_the_edge_knows_the_language_server_library() -> None:
    """pygls and lsprotocol stay under `lsp/`."""
    for path in SOURCES:
        if SERVER / "lsp" not in path.parents:
            assert not [name for name in imports(path) if name.split(".")[0] in ("pygls", "lsprotocol")], name_of(path)


def test_only_outbound_opens_connections() -> None:
    """One module imports network modules, and nobody dials through asyncio."""
    for path in SOURCES:
        if path == SERVER / "outbound.py":
            continue
        used = [name for name in imports(path) if name in NETWORK or name.split(".")[0] in NETWORK]
        assert not used, name_of(path)
        assert not {"open_connection", "create_connection", "open_unix_connection"} & set(calls(path)), name_of(path)


def test_the_engine_starts_without_network_modules() -> None:
    """Importing the line loads nothing that could open a connection, so nothing dials by accident."""
    code = (
        "import sys; import haversack.pipeline; "
        "print(*[m for m in ('urllib.request','http.client','http.server','socketserver','requests','httpx','aiohttp',"
        "'pygls','lsprotocol') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_the_server_knows_no_key_of_sealed_messages() -> None:
    """Only `sealing` has to do with keys; nothing the server runs imports it, and what knows `sealed` takes none."""
    sealing = SERVER / "sealing.py"
    for path in SERVER.rglob("*.py"):
        if path == sealing:
            continue
        used = {name.split(".")[0] for name in imports(path)} | {name for name in imports(path) if "sealing" in name}
        assert not used & {"nacl", "cryptography", "haversack.sealing"}, name_of(path)
        if path.stem in ("sealed", "turns") or "haversack.sealed" in imports(path):
            assert not [each for each in arguments(path) if "key" in each.arg and _names_bytes(each)], name_of(path)
    assert {each.arg for each in arguments(sealing) if _names_bytes(each)} >= {"key", "nonce"}


def test_no_message_of_the_protocol_has_a_key() -> None:
    """What a client may send has ids of keys, and no place for one."""
    messages = (SERVER / "lsp" / name for name in ("protocol.py", "sealed_messages.py"))
    nodes = [node for path in messages for node in ast.walk(tree(path)) if isinstance(node, ast.AnnAssign)]
    named = {ast.unparse(node.target) for node in nodes}
    assert {name for name in named if "key" in name or "secret" in name or "passphrase" in name} == {"key_id"}


def test_the_server_starts_without_the_library_of_ciphers() -> None:
    """Whoever seals loads it; the server has nothing to open."""
    names = "'haversack.sealing' in sys.modules, 'nacl' in sys.modules"
    code = f"import sys, haversack.lsp.server, haversack.session; print({names})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_stay_short_and_plainly_named(path: Path) -> None:
    """No file over 400 lines, none named for nothing in particular."""
    n_lines = path.read_text(encoding="utf-8").count("\n")
    assert n_lines <= MAX_LINES or path in UNMEASURED
    assert path.stem not in VAGUE_NAMES


def test_lines_are_the_protocols_lines() -> None:
    """`str.splitlines` also splits at form feeds and other separators, which moves every line after them."""
    assert not [name_of(path) for path in SOURCES if "splitlines" in calls(path)]


def test_only_the_command_line_prints() -> None:
    """Standard output belongs to the protocol; a stray print breaks the editor's connection."""
    allowed = {SERVER / "__main__.py", SERVER / "config.py"}
    for path in SOURCES:
        if path in allowed or SERVER / "cli" in path.parents:
            continue
        prints = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and _is_print(node)]
        assert all(any(keyword.arg == "file" for keyword in node.keywords) for node in prints), name_of(path)


def test_each_program_has_one_command_line() -> None:
    """Two readings of the same options drift apart: the server's are read in one place, the worker's in its own."""
    readers = {path for path in SOURCES if "ArgumentParser" in calls(path)}
    assert readers == {SERVER / "cli" / "arguments.py", INDEX / "worker.py"}


def _is_print(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "print"


def test_the_settings_page_is_fresh() -> None:
    """`docs/settings.md` is what `python -m haversack.config` prints."""
    assert (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8") == page()


def test_every_setting_is_read_somewhere() -> None:
    """A setting that nothing reads is a lie to the user."""
    homes = {SERVER / "settings_table.py", SERVER / "settings_conversation.py", SERVER / "types.py"}
    read = {
        node.attr
        for path in SOURCES
        if path not in homes
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert {field.name for field in fields(Settings)} == {setting.field for setting in SETTINGS}
    assert {setting.name for setting in SETTINGS if setting.field not in read} == set()


@pytest.mark.parametrize("kind", [Reason, Outcome, CompactTier])
def test_what_a_receipt_may_say_is_said_somewhere(kind: type[StrEnum]) -> None:
    """A reason, outcome or tier that nothing gives is a promise to readers of manifests that nobody keeps."""
    tellers = {SERVER / "types.py", SERVER / "manifest.py", *(SERVER / "cli").rglob("*.py")}
    given = {
        node.attr
        for path in SOURCES
        if path not in tellers
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == kind.__name__
    }
    assert {member.name for member in kind} == given
