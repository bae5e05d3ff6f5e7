"""How fast secrets are looked for, and how often something else is taken for one: on the standard library's source.

    python benchmarks/secrets.py [--show] [FOLDER ...]

Prints megabytes a second and findings a megabyte; fails below the speed that the pipeline counts on.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from pathlib import Path

from haversack.policy.secrets import find_secrets

# Megabytes a second: a prompt's files, some 500 kB, take less than a fortieth of a second.
SLOWEST = 20.0
SUFFIXES = frozenset({".py", ".js", ".ts", ".go", ".rs", ".c", ".h", ".java", ".md", ".toml", ".json", ".yaml", ".yml"})
MOST_BYTES = 1_000_000
SKIPPED = frozenset({"site-packages", ".venv", "node_modules", ".git", "__pycache__"})


def main() -> None:
    parser = argparse.ArgumentParser(description="speed and false alarms of the search for secrets")
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(sysconfig.get_paths()["stdlib"])])
    parser.add_argument("--show", action="store_true", help="name file, line and kind of each finding")
    options = parser.parse_args()
    texts = list(_texts(options.folders))
    megabytes = sum(len(text.encode("utf-8", "surrogatepass")) for _, text in texts) / 1e6
    best = float("inf")
    found: list[str] = []
    for _ in range(3):
        found.clear()
        start = time.perf_counter()
        for path, text in texts:
            found += [f"{path}:{1 + text.count(chr(10), 0, s.start)}: {s.kind}" for s in find_secrets(text)]
        best = min(best, time.perf_counter() - start)
    if options.show:
        print(*found, sep="\n")
    speed = megabytes / best
    print(f"{megabytes:.1f} MB in {len(texts):,} files: {speed:.1f} MB/s, {len(found)} findings")
    print(f"{len(found) / megabytes:.3f} findings a megabyte")
    if speed < SLOWEST:
        raise SystemExit(f"slower than {SLOWEST:.0f} MB/s")


def _texts(folders: list[Path]) -> list[tuple[Path, str]]:
    paths = (path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES)
    return [
        (path, path.read_text("utf-8", "replace"))
        for path in paths
        if path.is_file() and not SKIPPED.intersection(path.parts) and path.stat().st_size <= MOST_BYTES
    ]


if __name__ == "__main__":
    main()
