"""Does the context hold what a change had to touch? Asked with commit messages, judged by what the commits changed.

    python benchmarks/localize.py GIT_DIR... [--snapshots 3] [--cases 12] [--in-process] [--json]

A plain keyword search over windows of 40 lines stands beside the product. `benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from changes import SOURCE, Case, Lines, check_out, snapshots
from client import Server, percentile

BUDGETS = (2_000, 4_000, 16_000)
# Lines of a window of the keyword search, and how far the next one is.
WINDOW = 40
STEP = 20
# Characters of code in a token, about, so that the keyword search fills the same budget as the product.
TOKEN_CHARS = 3.5
# A hunk is there when this share of its lines is.
HELD = 0.5


@dataclass(slots=True)
class Answer:
    """What was served, best file first."""

    files: list[str] = field(default_factory=list)
    lines: dict[str, list[Lines]] = field(default_factory=dict)
    milliseconds: float = 0.0

    def add(self, path: str, spans: Iterable[Lines]) -> None:
        if path not in self.lines:
            self.files.append(path)
        self.lines.setdefault(path, []).extend(spans)


class System(Protocol):
    """Something that answers questions about one folder. Made ready by `with`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def ask(self, question: str, budget: int) -> Answer: ...


def main() -> int:
    parser = argparse.ArgumentParser(description="Change localisation on the history of git repositories")
    parser.add_argument("git_dirs", nargs="+", type=Path, metavar="GIT_DIR")
    parser.add_argument("--snapshots", type=int, default=3)
    parser.add_argument("--cases", type=int, default=12, help="cases of each snapshot, at most")
    parser.add_argument("--spacing", type=int, default=60, help="commits between snapshots")
    parser.add_argument("--in-process", action="store_true", help="without a server process")
    parser.add_argument("--json", action="store_true", help="every case as JSON instead of a table")
    options = parser.parse_args()
    systems: dict[str, Callable[[Path, Path], System]] = {
        "haversack": InProcess if options.in_process else ThroughServer,
        "rank-bm25": Keywords,
    }
    rows: list[dict[str, Any]] = []
    for git_dir in options.git_dirs:
        for snapshot in snapshots(git_dir, options.snapshots, options.cases, options.spacing):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch, "workspace")
                check_out(git_dir, snapshot.commit, folder)
                for name, make in systems.items():
                    about = {"repository": name_of(git_dir), "snapshot": snapshot.commit[:10], "system": name}
                    rows += [about | row for row in run(make, folder, Path(scratch, "cache"), snapshot.cases)]
                    print(f"{about['repository']} {about['snapshot']} {name}", file=sys.stderr)
    print(json.dumps(rows, indent=1) if options.json else table(rows, list(systems)))
    return 0


def run(make: Callable[[Path, Path], System], folder: Path, cache: Path, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """One row for each case, with the figures of every budget."""
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    with make(folder, cache) as system:
        ready = time.perf_counter() - began
        system.ask(cases[0].query, BUDGETS[0])  # the first question loads what every later one has
        for case in cases:
            row: dict[str, Any] = {"commit": case.commit[:10], "query": case.query, "index_s": ready}
            for budget in BUDGETS:
                answer = system.ask(case.query, budget)
                row |= judged(case, answer, budget)
            rows.append(row)
    return rows


def judged(case: Case, answer: Answer, budget: int) -> dict[str, float]:
    """Shares of the changed files and hunks that are served, and one over the place of the first changed file."""
    hunks = [(path, hunk) for path, spans in case.changed.items() for hunk in spans]
    held = sum(covered(hunk, answer.lines.get(path, ())) >= HELD for path, hunk in hunks)
    places = [answer.files.index(path) for path in case.changed if path in answer.lines]
    return {
        f"file@{budget}": len(places) / len(case.changed),
        f"hunk@{budget}": held / len(hunks),
        f"mrr@{budget}": 1 / (1 + min(places)) if places else 0.0,
        f"ms@{budget}": answer.milliseconds,
    }


def covered(hunk: Lines, spans: Iterable[Lines]) -> float:
    wanted = set(range(*hunk))
    return len(wanted & {line for span in spans for line in range(*span)}) / len(wanted)


# --- the systems ------------------------------------------------------------------------------------------------


class ThroughServer:
    """The product as an editor has it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._server = Server(folder, cache)

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._server.wait_ready()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

    def ask(self, question: str, budget: int) -> Answer:
        milliseconds, result = self._server.context(question, budget)
        answer = Answer(milliseconds=milliseconds)
        for block in sorted(result["blocks"], key=lambda block: -block["score"]):
            if block["path"]:
                spans = [(each["start"]["line"], each["end"]["line"]) for each in block["ranges"]]
                answer.add(block["path"], spans)
        return answer


class InProcess:
    """The same answers from a session in this process, faster to start."""

    def __init__(self, folder: Path, cache: Path) -> None:
        from haversack.session import open_session

        self._runner = asyncio.Runner()
        self._session = open_session(cache)
        self._folder = folder

    def __enter__(self) -> Self:
        async def start() -> None:
            self._session.add_folder(self._folder.resolve().as_uri())
            self._session.start_indexing()
            await self._session.wait_ready()

        self._runner.run(start())
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._session.close())
        self._runner.close()

    def ask(self, question: str, budget: int) -> Answer:
        from haversack.types import Request

        began = time.perf_counter()
        bundle = self._runner.run(self._session.context(Request(question, budget_tokens=budget)))
        answer = Answer(milliseconds=(time.perf_counter() - began) * 1000)
        for block in sorted(bundle.blocks, key=lambda block: -block.score):
            if block.path:
                answer.add(block.path, block.spans)
        return answer


class Keywords:
    """Okapi BM25 over windows of source files: what anybody has in twenty lines. It reads no prose and no data."""

    def __init__(self, folder: Path, cache: Path) -> None:
        del cache
        self._folder = folder

    def __enter__(self) -> Self:
        from rank_bm25 import BM25Okapi

        self._windows: list[tuple[str, Lines, int]] = []
        texts: list[list[str]] = []
        for path in sorted(each for each in self._folder.rglob("*") if each.suffix in SOURCE and each.is_file()):
            name = path.relative_to(self._folder).as_posix()
            lines = path.read_bytes().decode("utf-8", "replace").split("\n")
            for start in range(0, len(lines), STEP):
                text = "\n".join(lines[start : start + WINDOW])
                span = (start, min(start + WINDOW, len(lines)))
                self._windows.append((name, span, round(len(text) / TOKEN_CHARS)))
                texts.append(words(f"{name} {text}") or ["_"])
        self._search = BM25Okapi(texts)
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def ask(self, question: str, budget: int) -> Answer:
        began = time.perf_counter()
        scores = self._search.get_scores(words(question))
        answer = Answer()
        for place in scores.argsort(kind="stable")[::-1]:
            path, span, tokens = self._windows[int(place)]
            if scores[place] <= 0 or tokens > budget:
                break
            budget -= tokens
            answer.add(path, [span])
        answer.milliseconds = (time.perf_counter() - began) * 1000
        return answer


def words(text: str) -> list[str]:
    """Words in lower case; names are given whole and in their parts."""
    found: list[str] = []
    for name in re.findall(r"[A-Za-z_][A-Za-z0-9_]+", text):
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)
        found += [name.lower()] if len(parts) < 2 else [name.lower(), *(part.lower() for part in parts)]
    return found


# --- the table --------------------------------------------------------------------------------------------------


def table(rows: Sequence[Mapping[str, Any]], systems: Sequence[str]) -> str:
    """Means of the cases of each repository, and the mean of the repositories below."""
    columns = [f"{what}@{budget}" for what in ("file", "hunk") for budget in BUDGETS] + [f"mrr@{BUDGETS[-1]}"]
    lines = ["| repository | cases | system | " + " | ".join(columns) + " | p50 | index |"]
    lines.append("| --- " * (len(columns) + 5) + "|")
    repositories = list(dict.fromkeys(row["repository"] for row in rows))
    for repository in repositories:
        for system in systems:
            some = [row for row in rows if (row["repository"], row["system"]) == (repository, system)]
            lines.append(line(repository, str(len(some)), system, [mean(some, column) for column in columns], some))
    for system in systems if len(repositories) > 1 else ():
        own = [row for row in rows if row["system"] == system]
        by = [[row for row in own if row["repository"] == repository] for repository in repositories]
        figures = [sum(mean(some, column) for some in by) / len(by) for column in columns]
        lines.append(line("**mean**", str(len(own)), system, figures, own))
    lines += ["", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; p50 is of budget {BUDGETS[1]}"]
    return "\n".join(lines)


def line(repository: str, n: str, system: str, figures: Sequence[float], rows: Sequence[Mapping[str, Any]]) -> str:
    speed = percentile([row[f"ms@{BUDGETS[1]}"] for row in rows], 0.5)
    cells = [repository, n, system, *(f"{each:.3f}" for each in figures), f"{speed:.0f} ms"]
    return f"| {' | '.join(cells)} | {mean(rows, 'index_s'):.1f} s |"


def mean(rows: Sequence[Mapping[str, Any]], column: str) -> float:
    return sum(row[column] for row in rows) / len(rows)


def name_of(git_dir: Path) -> str:
    """The last part of the path that says something."""
    parts = [part for part in git_dir.resolve().parts if part not in (".git", "repo")]
    return parts[-1].removesuffix(".git")


if __name__ == "__main__":
    sys.exit(main())
