"""A tree too big to be indexed in a moment, and what an editor waits for meanwhile."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from client import Memory, Server, megabytes, summary

# What an editor may wait for an answer that needs no work, in milliseconds.
TRIVIAL_LIMIT = 20.0
# Files of the big tree, and seconds of its indexing that are looked at.
BIG_FILES = 50_000
BIG_SECONDS = 45.0
# Status requests between two questions.
BETWEEN_QUESTIONS = 200


def while_indexing(scratch: Path, n_files: int) -> dict[str, Any]:
    """Milliseconds of a trivial request while a big tree is indexed for the first time."""
    folder = scratch / "big"
    grow(folder, n_files)
    took: list[float] = []
    context: list[float] = []
    with Server(folder, scratch / "bigcache") as server, Memory(server.pid) as memory:
        limit = time.perf_counter() + BIG_SECONDS
        status: Any = None
        while time.perf_counter() < limit:
            milliseconds, status = server.timed("haversack/index/status", {})
            took.append(milliseconds)
            if status["state"] == "ready":
                break
            if len(took) % BETWEEN_QUESTIONS == 0:
                context.append(server.context("How is the total of an order computed?", 4_000)[0])
            time.sleep(0.005)
    return {
        "files": n_files,
        "indexed": status["done"],
        "ready": status["state"] == "ready",
        "n": len(took),
        **summary(took),
        "max": max(took),
        "over": sum(each > TRIVIAL_LIMIT for each in took),
        "context": summary(context) if context else None,
        "memory": megabytes(memory),
    }


def grow(folder: Path, n_files: int) -> None:
    """A tree of small Python modules, a hundred in a folder."""
    for number in range(n_files):
        place = folder / f"part{number // 5000:02d}" / f"group{number // 100 % 50:02d}"
        if number % 100 == 0:
            place.mkdir(parents=True, exist_ok=True)
        (place / f"module{number}.py").write_text(MODULE.format(number=number, other=number * 7 % n_files))


MODULE = '''"""Orders of region {number}."""

from part import module{other}


class Ledger{number}:
    """Keeps orders until they are paid."""

    def __init__(self, limit):
        self.limit = limit
        self.orders = []

    def total_{number}(self):
        """Sum of all orders, with the rebate of the region."""
        return sum(order.price * (1 - order.rebate) for order in self.orders if order.price < self.limit)


def settle_{number}(ledger, today):
    """Move what is due to the other region's ledger."""
    due = [order for order in ledger.orders if order.day <= today]
    for order in due:
        module{other}.receive(order, ledger.limit)
    return len(due)
'''
