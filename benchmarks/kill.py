"""Kill the indexing process at random moments and check that its database is whole each time.

    python benchmarks/kill.py [--kills 50] [--files 400] [--seed 7]

Prints one line per failure and a summary; status 1 when there was one. Run from the root of the repository.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from indexing import dump, index, module, write_tree

from haversack_index.embed import load_embedder


def main() -> int:
    parser = argparse.ArgumentParser(description="kill -9 against the index")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    failures = finished = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch) / "w", Path(scratch) / "c"
        write_tree(folder, {f"p{i % 9}/f{i}.py": module(f"topic{i}", 4) for i in range(options.files)})
        for kill in range(options.kills):
            edit(folder, chance, options.files)
            finished += run(folder, cache, chance.uniform(0.0, 0.25))
            found = dump(folder, cache)
            without_chunks = {row[0] for row in found["files"]} - {row[0] for row in found["chunks"]}
            if found["problems"] or without_chunks:
                failures += 1
                print(f"kill {kill}: {found['problems'][:5]} {sorted(without_chunks)[:5]}")
        embedder = load_embedder("static")
        index(folder, cache, embedder=embedder)
        index(folder, Path(scratch) / "fresh", embedder=embedder)
        if dump(folder, cache) != dump(folder, Path(scratch) / "fresh"):
            failures += 1
            print("the index after all kills differs from one built from nothing")
    took = time.monotonic() - started
    print(f"{options.kills} kills, {finished} passes had ended before theirs, {failures} failures, {took:.0f} s")
    return 1 if failures else 0


def edit(folder: Path, chance: random.Random, n_files: int) -> None:
    """Change, remove and bring back some files, so that each run has work of every kind."""
    for _ in range(n_files // 4):
        number = chance.randrange(n_files)
        path = folder / f"p{number % 9}/f{number}.py"
        if chance.random() < 0.2:
            path.unlink(missing_ok=True)
        else:
            path.write_text(module(f"topic{number}", chance.randrange(1, 9)))


def run(folder: Path, cache: Path, seconds: float) -> bool:
    """One worker, killed so long after its first progress; whether its pass had ended by then."""
    command = [sys.executable, "-m", "haversack_index.worker", "--folder", str(folder), "--cache-dir", str(cache)]
    embedder = json.dumps({"arguments": {"kind": "static"}})
    process = subprocess.Popen(
        [*command, "--processes", "2", "--embedder", embedder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"command": "update", "paths": null}\n')
    process.stdin.flush()
    for line in process.stdout:
        if json.loads(line)["event"] == "progress":
            break
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    return '"ready"' in rest


if __name__ == "__main__":
    sys.exit(main())
