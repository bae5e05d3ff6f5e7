"""Questions about a workspace, made from the workspace itself: the same ones each time it stands at the same commit."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

# Names of definitions in most languages, without a parser, so that the questions do not depend on the product.
DEFINITION = re.compile(
    r"^[ \t]*(?:export[ ]+)?(?:pub[ ]+)?(?:async[ ]+)?(?:def|class|function|func|fn|interface|struct|trait)[ ]+"
    r"([A-Za-z_][A-Za-z0-9_]{5,40})",
    re.MULTILINE,
)
# Ends of names of files that hold code; docs and data have no definitions to ask about.
CODE = (".py", ".ts", ".tsx", ".js", ".mjs", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cpp", ".hpp", ".rb", ".cs")
# Folders that a person does not ask about.
ASIDE = frozenset({".git", "node_modules", "vendor", "dist", "target", ".venv"})
# Bytes read of a file: names near its head are the ones people know.
HEAD = 200_000
# Code files looked at; the first ones by name, so that a huge tree costs no minutes.
MAX_FILES = 4000

NAMED = (
    "How does {name} work?",
    "Where is {name} called, and with what?",
    "Add a test for {name}",
    "What happens when {name} fails?",
    "Explain @{name}",
)
ABOUT_FILES = ("What is @{path} for?", "Why does @{path} need so much code?", "Simplify {path}")
GENERAL = (
    "What is this project about?",
    "How is the code organised and where do I start?",
    "How are errors handled?",
    "Where is the configuration read?",
)


def questions(folder: Path, n: int = 40) -> list[str]:
    """`n` questions: up to a third from commit subjects, then names, files and general ones in turn."""
    names, paths = definitions(folder)
    subjects = commit_subjects(folder, n // 3)
    by_name = [NAMED[i % len(NAMED)].format(name=name) for i, name in enumerate(names[:n])]
    by_path = [ABOUT_FILES[i % len(ABOUT_FILES)].format(path=path) for i, path in enumerate(spread(paths, n // 5))]
    mixed = chain.from_iterable(zip_longest(subjects, by_name, by_path, GENERAL))
    return list(dict.fromkeys(each for each in mixed if each))[:n]


def commit_subjects(folder: Path, n: int) -> list[str]:
    """Subjects of the last commits, as somebody would give them for a task; none outside a repository."""
    command = ["git", "-C", str(folder), "log", "--no-merges", "--format=%s", "-200"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    subjects = [re.sub(r"\s*\(?#\d+\)?", "", line).strip() for line in found.stdout.split("\n")]
    return [line for line in subjects if len(line.split()) > 3][:n]


def definitions(folder: Path) -> tuple[list[str], list[str]]:
    """Names defined once in the folder, spread over its files, and the paths of its code files."""
    seen: Counter[str] = Counter()
    first: list[str] = []
    paths: list[str] = []
    for path in code_files(folder):
        paths.append(path)
        text = (folder / path).read_bytes()[:HEAD].decode("utf-8", "replace")
        found = DEFINITION.findall(text)
        seen.update(found)
        first += found[:1]
    once = [name for name in first if seen[name] == 1]
    return spread(once, 40), paths


def code_files(folder: Path) -> Iterator[str]:
    """Paths of code files, in order of name, folder by folder."""
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ASIDE)
        for name in sorted(files):
            if name.endswith(CODE) and count < MAX_FILES:
                count += 1
                yield (Path(here) / name).relative_to(folder).as_posix()


def spread(values: list[str], n: int) -> list[str]:
    """`n` of them at even distances."""
    if len(values) <= n:
        return values
    return [values[i * len(values) // n] for i in range(n)]
