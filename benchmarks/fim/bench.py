"""How much of the names that a held-out line needs from other files is in the prompt? Ours and rivals', same room.

    python benchmarks/fim/bench.py FOLDER [--cursors 60] [--seed 1] [--set dev|held|all] [--no-rivals]

FOLDER holds a tree for each row of `repositories.toml`, named `owner+name`. See README.md here.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cursors import NAME, Case, draw, load
from memory import MemoryLibrary
from rivals import RIVALS

from haversack.fim.crossfile.choose import FRAME, pieces_for
from haversack.fim.crossfile.imports import Paths
from haversack.fim.nouns import Cursor, Place
from haversack.types import FileText

BUDGETS = (1_000, 2_000, 4_000)
# Part of the room that the text around the cursor has at least, as by default in the product; three quarters of it
# before the cursor.
LOCAL = 0.7
BEFORE = 0.75


def count(text: str) -> int:
    """Tokens by length, the same for all: code has some 3.6 characters a token."""
    return max(1, round(len(text) / 3.6))


def local_text(case: Case, room: int) -> tuple[str, int]:
    """Whole lines around the cursor; what one side does not need is the other's. Also what is left of the room."""
    before = [
        *reversed(case.lines[: case.line]),
    ]
    before.insert(0, case.lines[case.line])
    after = list(case.lines[case.line + 1 :])
    need = sum(map(count, after))
    room_after = min(need, int(room * (1 - BEFORE)))
    taken_before, left = _fill(before, room - room_after)
    taken_after, left = _fill(after, room_after + left)
    return "".join((*reversed(taken_before), *taken_after)), left


def _fill(lines: list[str], room: int) -> tuple[list[str], int]:
    taken: list[str] = []
    for line in lines:
        cost = count(line)
        if cost > room:
            break
        room -= cost
        taken.append(line)
    return taken, room


def rival_prompt(case: Case, pieces: list[str], offered: bool, budget: int) -> str:
    local, left = local_text(case, int(budget * LOCAL) if offered else budget)
    room = left + budget - int(budget * LOCAL) if offered else 0
    texts: list[str] = []
    for piece in pieces:
        lines = piece.splitlines(keepends=True)
        taken, room = _fill(lines, room)
        texts.append("".join(taken))
        if len(taken) < len(lines):
            break
    if offered and room > 0:  # what other files do not need is the cursor's own file's again
        local, _ = local_text(case, int(budget * LOCAL) + room)
    return local + "\n".join(texts)


def our_prompt(case: Case, paths: Paths, budget: int) -> str:
    local, left = local_text(case, int(budget * LOCAL))
    room = left + budget - int(budget * LOCAL)
    library = MemoryLibrary(case, paths)
    places = [Place("", path, (max(0, at - 16), at + 16), False) for path, at in case.visited]
    file = FileText("", case.path, case.lines, case.language, "", True)
    cursor = Cursor("", file, case.line, case.column, case.language)
    pieces = pieces_for(cursor, places, library, room, count)
    texts = ["".join(library.lines(each.path)[each.start : each.end]) for each in pieces]
    names = {each.path for each in pieces}
    used = sum(map(count, texts)) + sum(count(name) + FRAME for name in names)
    local, _ = local_text(case, int(budget * LOCAL) + max(0, room - used)) if used < room else (local, 0)
    return "\n".join((local, *texts))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--cursors", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--set", default="all", choices=("dev", "held", "all"))
    options.add_argument("--no-rivals", action="store_true")
    asked = options.parse_args()
    rows = tomllib.loads((Path(__file__).parent / "repositories.toml").read_text("utf-8"))["repository"]
    for part in ("dev", "held") if asked.set == "all" else (asked.set,):
        roots = [asked.folder / row["name"].replace("/", "+") for row in rows if row["set"] == part]
        _measure(part, [root for root in roots if root.is_dir()], asked.cursors, asked.seed, not asked.no_rivals)


def _measure(part: str, roots: list[Path], n: int, seed: int, with_rivals: bool) -> None:
    hits: dict[tuple[str, int, str], int] = defaultdict(int)
    totals: dict[str, int] = defaultdict(int)
    by_repository: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    times: list[float] = []
    for root in roots:
        repository = load(root)
        paths = Paths(list(repository.texts))
        for case in draw(repository, n, seed):
            groups = {"novel": case.novel, "occurring": case.occurring, "in file": case.in_file}
            for group, names in groups.items():
                totals[group] += len(names)
            methods: dict[str, Callable[[int], str]] = {}
            for name, rival in (RIVALS if with_rivals else {}).items():
                methods[name] = partial(rival_prompt, case, rival(case), name != "prefix+suffix")
            methods["haversack"] = partial(our_prompt, case, paths)
            for name, prompt in methods.items():
                for budget in BUDGETS:
                    began = time.process_time()
                    seen = set(NAME.findall(prompt(budget)))
                    if name == "haversack":
                        times.append(time.process_time() - began)
                    for group, names in groups.items():
                        hits[name, budget, group] += len(names & seen)
                    if budget == 2_000:
                        row = by_repository[root.name, name]
                        row[0] += len(case.novel & seen)
                        row[1] += len(case.novel)
    print(f"\n{part}: {dict(totals)} names, repositories {[root.name for root in roots]}")
    print(f"| {'method':18} | " + " | ".join(f"{group} {budget}" for group in totals for budget in BUDGETS) + " |")
    for name in dict.fromkeys(name for name, _, _ in hits):
        shares = [hits[name, budget, group] / max(1, totals[group]) for group in totals for budget in BUDGETS]
        print(f"| {name:18} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")
    for root in roots:
        row = {
            name: f"{have / max(1, n_all):.2f}"
            for (where, name), (have, n_all) in by_repository.items()
            if where == root.name
        }
        print(root.name, "novel at 2,000:", row)
    times.sort()
    if times:
        p50, p95 = (times[int(len(times) * share)] * 1e3 for share in (0.5, 0.95))
        print(f"processor time of ours, whole prompt: p50 {p50:.1f} ms, p95 {p95:.1f} ms")


if __name__ == "__main__":
    main()
