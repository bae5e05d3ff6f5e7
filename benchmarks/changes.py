"""Past changes of a git repository as cases: what was wanted, and which lines that stood before had to be touched.

A snapshot is taken some commits back, and the commits after it are its cases. A case is kept only when every file it
changes still was, one commit before it, what it is in the snapshot: then its line numbers mean the snapshot's lines.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

Lines = tuple[int, int]
"""From 0, end exclusive."""

# What counts as source: languages in which people fix things, no markup, styles or data.
_SOURCE_TEXT = (
    ".py .js .jsx .mjs .cjs .ts .tsx .mts .go .rs .java .kt .scala .c .cc .cpp .h .hh .hpp .rb .php .cs .swift .lua"
)
SOURCE = frozenset(_SOURCE_TEXT.split())
# Words in a path that mean the file serves tests, examples or documents.
_SUPPORT_TEXT = """
    test tests testing testdata spec specs e2e fixture fixtures mock mocks example examples demo demos doc docs bench
    benches benchmark benchmarks playground vendor third_party dist"""
SUPPORT = frozenset(_SUPPORT_TEXT.split())
# A change over more files is a sweep: no question would ask for all of them.
MAX_FILES = 6
# Shorter messages ("fix typo") name nothing that could be found.
MIN_WORDS = 4
# Of a long message the head is what was wanted, the rest is reasoning.
MAX_CHARS = 700
# Lines that tools and habits add below a message, and references that lead out of it.
TRAILER = re.compile(
    r"^[a-z]+(-[a-z]+)*-by:|^(fix|close|resolve|ref)(e?[sd])?:? +(#|http)|^change-id:|^merge (pull|branch|remote)", re.I
)
REFERENCE = re.compile(r"\(?(?:[\w.-]+/[\w.-]+)?#\d+\)?|https?://\S+|\b(?=\w*\d)[0-9a-f]{8,40}\b")


@dataclass(frozen=True, slots=True)
class Case:
    """`changed`: path to the lines of each hunk as they stood; for lines only added, the two around them."""

    commit: str
    query: str
    changed: dict[str, tuple[Lines, ...]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    commit: str
    cases: tuple[Case, ...]


def snapshots(git_dir: Path, n: int, n_cases: int, spacing: int) -> list[Snapshot]:
    """The last `n` snapshots, `spacing` commits apart, that have cases; at most `n_cases` each, earliest first."""
    limit = str(spacing * n * 3 + 1)  # some stretches of history hold no case at all
    commits = git(git_dir, "rev-list", "--first-parent", "-n", limit, "HEAD").split()
    found: list[Snapshot] = []
    for place in range(spacing, len(commits), spacing):
        after = commits[place - spacing : place][::-1]
        cases = list(_cases(git_dir, commits[place], after, n_cases))
        if cases:
            found.append(Snapshot(commits[place], tuple(cases)))
        if len(found) == n:
            break
    return found


def _cases(git_dir: Path, snapshot: str, commits: list[str], limit: int) -> Iterator[Case]:
    count = 0
    for commit in commits:
        query = wanted(git(git_dir, "show", "-s", "--format=%B", commit))
        if len(query.split()) < MIN_WORDS or count == limit:
            continue
        names = git(git_dir, "diff", "--name-only", "-z", "--no-renames", f"{commit}^1", commit).split("\0")
        sources = [name for name in names if name and is_source(name)]
        if not 0 < len(sources) <= MAX_FILES:
            continue
        # A file that came or changed since the snapshot cannot be found in it by line.
        if git(git_dir, "diff", "--name-only", snapshot, f"{commit}^1", "--", *sources):
            continue
        patch = git(git_dir, "diff", "--no-renames", "--no-color", "-U0", f"{commit}^1", commit, "--", *sources)
        changed = {path: spans for path, spans in hunks(patch).items() if spans}
        if changed:
            count += 1
            yield Case(commit, query, changed)


def hunks(patch: str) -> dict[str, tuple[Lines, ...]]:
    """Path to the old lines of each hunk of a patch without context. Files that are new have none."""
    found: dict[str, tuple[Lines, ...]] = {}
    path = ""
    for line in patch.split("\n"):
        if line.startswith("--- "):
            path = line[6:] if line.startswith("--- a/") else ""
        elif path and (match := re.match(r"@@ -(\d+)(?:,(\d+))? ", line)):
            first, count = int(match[1]), int(match[2] or 1)
            span = (first - 1, first - 1 + count) if count else (max(first - 1, 0), first + 1)
            found[path] = (*found.get(path, ()), span)
    return found


def wanted(message: str) -> str:
    """A commit's message without what tools add and what points outside."""
    lines = [REFERENCE.sub("", line).rstrip() for line in message.split("\n") if not TRAILER.match(line)]
    return "\n".join(lines).strip()[:MAX_CHARS]


def is_source(path: str) -> bool:
    """Whether it is code of the thing itself, by its name."""
    pure = PurePosixPath(path.lower())
    words = {word for part in pure.with_suffix("").parts for word in re.split(r"[._-]+", part)}
    camel = re.search(r"(Tests?|Spec)\.\w+$", path)
    return pure.suffix in SOURCE and not words & SUPPORT and not camel and pure.name != "conftest.py"


def check_out(git_dir: Path, commit: str, folder: Path) -> None:
    """The files of a commit, without its history: what came after must not be there to be found."""
    packed = subprocess.run(["git", "--git-dir", git_dir, "archive", commit], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def git(git_dir: Path, *arguments: str) -> str:
    command = ["git", "--git-dir", str(git_dir), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
