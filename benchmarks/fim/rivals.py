"""What others put before a cursor, in own code after their published logic. All return pieces, best first."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import lru_cache

from cursors import NAME, Case, Repository

Piece = str


def nothing(case: Case) -> list[Piece]:
    return []


def _windows(lines: tuple[str, ...], size: int, step: int) -> list[tuple[str, ...]]:
    return [lines[at : at + size] for at in range(0, max(1, len(lines) - size // 2), step)]


def _text(path: str, lines: tuple[str, ...]) -> Piece:
    return f"# {path}\n{''.join(lines)}"


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _names(lines: tuple[str, ...]) -> frozenset[str]:
    return frozenset(NAME.findall("".join(lines)))


def neighbouring_tabs(case: Case) -> list[Piece]:
    """The best window of 60 lines of each open file, by Jaccard with the 60 lines before the cursor."""
    asked = _names(case.lines[max(0, case.line - 60) : case.line])
    found: list[tuple[float, Piece]] = []
    for path, _ in case.visited:
        scored = [(_jaccard(asked, _names(window)), window) for window in _windows(case.repository.texts[path], 60, 10)]
        if scored:
            score, best = max(scored, key=lambda each: each[0])
            found.append((score, _text(path, best)))
    return [piece for _, piece in sorted(found, key=lambda each: -each[0])]


def ring(case: Case) -> list[Piece]:
    """Chunks of 64 lines around places visited, at most 16; a new chunk evicts those alike by more than 0.9."""
    kept: list[tuple[str, tuple[str, ...]]] = []
    for path, line in reversed(case.visited):
        chunk = case.repository.texts[path][max(0, line - 32) : line + 32]
        kept = [each for each in kept if _jaccard(frozenset(each[1]), frozenset(chunk)) <= 0.9]
        kept = [*kept, (path, chunk)][-16:]
    return [_text(path, chunk) for path, chunk in reversed(kept)]


@lru_cache(maxsize=4)
def _chunks(key: int, name: str) -> tuple[list[tuple[str, tuple[str, ...], Counter[str]]], dict[str, float]]:
    repository = _KNOWN[key]
    chunks = [
        (path, window, Counter(NAME.findall("".join(window))))
        for path, lines in repository.texts.items()
        for window in _windows(lines, 30, 20)
    ]
    counts: Counter[str] = Counter()
    for _, _, names in chunks:
        counts.update(names.keys())
    return chunks, {name: math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5)) for name, n in counts.items()}


_KNOWN: dict[int, Repository] = {}


def bm25(case: Case) -> list[Piece]:
    """Chunks of 30 lines of the whole repository by BM25 with the 20 lines before the cursor."""
    _KNOWN[id(case.repository)] = case.repository
    chunks, weight = _chunks(id(case.repository), case.repository.name)
    asked = set(NAME.findall("".join(case.lines[max(0, case.line - 20) : case.line + 1])))
    mean = sum(sum(names.values()) for _, _, names in chunks) / max(1, len(chunks))
    found: list[tuple[float, str, tuple[str, ...]]] = []
    for path, window, names in chunks:
        if path == case.path:
            continue
        size = 1.2 * (0.25 + 0.75 * sum(names.values()) / mean)
        score = sum(weight[name] * names[name] * 2.2 / (names[name] + size) for name in asked if name in names)
        found.append((score, path, window))
    found.sort(key=lambda each: -each[0])
    return [_text(path, window) for _, path, window in found[:60]]


def repo_map(case: Case) -> list[Piece]:
    """Signatures of tags, by a random walk over files joined by names, beginning at the cursor's file."""
    repository = case.repository
    users: dict[str, dict[str, int]] = defaultdict(dict)
    for path, parsed in repository.parsed.items():
        names = Counter(each.name for each in parsed.references)
        if path == case.path:
            names = Counter(NAME.findall("".join(case.lines)))
        for name, n in names.items():
            if name in repository.defined:
                users[path][name] = n
    rank = {path: 1.0 if path == case.path else 0.0 for path in repository.texts}
    tags: dict[tuple[str, str], float] = {}
    for _ in range(8):
        given = {path: 0.15 if path == case.path else 0.0 for path in repository.texts}
        tags = defaultdict(float)
        for path, names in users.items():
            weights = {
                (target, name): math.sqrt(n) * (10 if len(name) >= 8 else 1) / len(repository.defined[name])
                for name, n in names.items()
                for target in repository.defined[name]
                if target != path and len(repository.defined[name]) <= 5
            }
            total = sum(weights.values())
            for (target, name), weight in weights.items():
                share = 0.85 * rank[path] * weight / total
                given[target] += share
                tags[(target, name)] += share
        rank = given
    pieces: list[Piece] = []
    for (path, name), _ in sorted(tags.items(), key=lambda each: -each[1])[:400]:
        if path != case.path:
            pieces += [each.signature + "\n" for each in repository.parsed[path].symbols if each.name == name][:2]
    return list(dict.fromkeys(pieces))


RIVALS = {
    "prefix+suffix": nothing,
    "neighbouring tabs": neighbouring_tabs,
    "ring": ring,
    "bm25 chunks": bm25,
    "repo map": repo_map,
}
