"""Places to complete at, drawn by seed from repositories that are brought; none of their text is kept here."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from haversack_index.chunk import parse_file
from haversack_index.text import split_lines
from haversack_index.types import ParsedFile

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
# Vendored, generated and test code is nobody's work at hand.
_SKIPPED = re.compile(r"(^|/)(vendor|modules|third_party|node_modules|dist|testdata|tests?|__tests__|docs?|examples?)/")
_TEST = re.compile(r"(_test\.|\.test\.|\.spec\.|Test\.java$|test_)")
_ENDINGS = {
    ".py": "python", ".ts": "typescript", ".tsx": "tsx", ".js": "javascript", ".go": "go", ".rs": "rust",
    ".java": "java", ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp",
}  # fmt: skip
_IMPORT = re.compile(r"^\s*(import|from|use|pub use|#|package|export \* from|export \{|mod |//|/?\*|--)|require\(")
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|//.*|#.*|/\*.*")
# A name defined in more files than this tells nothing about where it comes from.
_MOST_FILES = 6
_LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class Repository:
    name: str
    texts: dict[str, tuple[str, ...]]  # path → lines with their ends
    parsed: dict[str, ParsedFile]
    defined: dict[str, set[str]]  # name → paths


@dataclass(frozen=True, slots=True)
class Case:
    """`lines` is the buffer without what is held out. `novel` names occur nowhere in it, `occurring` do."""

    repository: Repository
    path: str
    lines: tuple[str, ...]
    line: int
    column: int
    novel: frozenset[str]
    occurring: frozenset[str]
    in_file: frozenset[str]
    visited: tuple[tuple[str, int], ...]  # files and lines lately looked at, newest first
    language: str


def load(root: Path) -> Repository:
    texts: dict[str, tuple[str, ...]] = {}
    parsed: dict[str, ParsedFile] = {}
    defined: dict[str, set[str]] = defaultdict(set)
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix not in _ENDINGS or not file.is_file() or file.is_symlink() or re.search(r"(^|/)modules/", path):
            continue
        data = file.read_text("utf-8", "replace")
        if len(data) > _LONGEST:
            continue
        texts[path] = tuple(split_lines(data))
        parsed[path] = parse_file(path, data)
        for symbol in parsed[path].symbols:
            defined[symbol.name].add(path)
    return Repository(root.name, texts, parsed, dict(defined))


def draw(repository: Repository, n: int, seed: int) -> list[Case]:
    """At most `n` places, half of them with a novel name, no more than six in a file.

    Every second one keeps its line up to the first name of another file.
    """
    chance = random.Random(f"{seed}:{repository.name}")
    places = [
        (path, number)
        for path, lines in repository.texts.items()
        if not _SKIPPED.search(path) and not _TEST.search(path)
        for number in range(len(lines))
    ]
    chance.shuffle(places)
    per_file: Counter[str] = Counter()
    cases: list[Case] = []
    n_plain = 0
    for path, number in places:
        if len(cases) >= n:
            break
        if per_file[path] >= 6:
            continue
        case = _case(repository, path, number, len(cases) % 2 == 1, chance)
        if case is not None and (case.novel or n_plain < n // 2):
            n_plain += not case.novel
            per_file[path] += 1
            cases.append(case)
    return cases


def _case(repository: Repository, path: str, number: int, is_midline: bool, chance: random.Random) -> Case | None:
    lines = repository.texts[path]
    text = lines[number]
    if _IMPORT.search(text):
        return None
    code = _STRING.sub(lambda match: " " * len(match[0]), text.rstrip("\r\n"))
    cross = {
        match[0]: match.start()
        for match in reversed(list(NAME.finditer(code)))
        if path not in (where := repository.defined.get(match[0], set())) and 0 < len(where) <= _MOST_FILES
    }
    if not cross:
        return None
    column = min(cross.values()) if is_midline else 0
    kept = text[:column] + "\n"
    buffer = (*lines[:number], kept, *lines[number + 1 :])
    here = set(NAME.findall("".join(buffer)))
    held = {match[0] for match in NAME.finditer(code) if match.start() >= column}
    names = frozenset(cross)
    novel = names - here
    return Case(
        repository,
        path,
        buffer,
        number,
        column,
        novel,
        names - novel,
        frozenset(held & here) - names,
        _visited(repository, path, chance),
        _ENDINGS["." + path.rsplit(".", 1)[-1]],
    )


def _visited(repository: Repository, path: str, chance: random.Random) -> tuple[tuple[str, int], ...]:
    """A session as drawn: three files of the same folder and three of anywhere, each at a line by chance."""
    folder = path.rpartition("/")[0]
    others = [each for each in repository.texts if each != path]
    near = [each for each in others if each.rpartition("/")[0] == folder]
    chosen = chance.sample(near, min(3, len(near)))
    far = [each for each in others if each not in chosen]
    chosen += chance.sample(far, min(3, len(far)))
    chance.shuffle(chosen)
    return tuple((each, chance.randrange(max(1, len(repository.texts[each])))) for each in chosen)
