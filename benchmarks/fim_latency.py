"""What a prompt for inline completion costs while somebody types: 500 keys over 20 files of 3,000, with the index being
built. `python benchmarks/fim_latency.py [KEYS]`.

Per key: the edit, then `haversack/fim`. `client` is what the editor waits for the answer, in milliseconds; `line` what
the server's own clock gives for finding and fitting. Bars: half of the keys in 10 ms, 95 of 100 in 30 ms.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from big_tree import grow
from client import Server, summary

N_FILES = 3_000
N_OPEN = 20
# Seconds between two keys of a fast typist.
PAUSE = 0.02
TYPED = "    total = sum(order.price for order in orders)\n"


def typing(scratch: Path, n_keys: int) -> dict[str, Any]:
    """Times of all keys, and whether the index was still being built when the last one was typed."""
    folder = scratch / "tree"
    grow(folder, N_FILES)
    paths = sorted(folder.rglob("*.py"))[:: N_FILES // N_OPEN][:N_OPEN]
    client: list[float] = []
    line: list[float] = []
    with Server(folder, scratch / "cache") as server:
        for path in paths:
            document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text()}
            server.notify("textDocument/didOpen", {"textDocument": document})
        for key in range(n_keys):
            path, at = paths[key * N_OPEN // n_keys], key % len(TYPED)
            row, column = (2, at) if at else (2, 0)
            place = {"line": row, "character": column}
            change = {"range": {"start": place, "end": place}, "text": TYPED[at]}
            version = {"uri": path.as_uri(), "version": key + 2}
            server.notify("textDocument/didChange", {"textDocument": version, "contentChanges": [change]})
            after = {"line": row, "character": column + 1} if TYPED[at] != "\n" else {"line": row + 1, "character": 0}
            milliseconds, found = server.timed("haversack/fim", {"uri": path.as_uri(), "position": after})
            client.append(milliseconds)
            line.append(sum(each["milliseconds"] for each in found["manifest"]["timings"]))
            time.sleep(PAUSE)
        _, status = server.timed("haversack/index/status", {})
    return {"keys": n_keys, "index": status["state"], "client": summary(client), "line": summary(line)}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        json.dump(typing(Path(scratch), int(sys.argv[1]) if len(sys.argv) > 1 else 500), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
