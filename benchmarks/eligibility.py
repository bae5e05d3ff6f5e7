"""How long judging supplied items takes, by their number: reading them, and qualifying them under a token budget.

    python benchmarks/eligibility.py

Fails when 5,000 items take longer than 200 ms to qualify, the best of five rounds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from supplying import SCOPE, item, request

from haversack.policy.eligibility import qualify
from haversack.token_estimate import by_characters

LIMIT_MS = 200.0
ROUNDS = 5


def best(work: Callable[[], object]) -> float:
    """Milliseconds of computing time of the fastest round; the machine may be busy with other things."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(1_000 * (time.process_time() - start))
    return min(times)


def main() -> int:
    qualifying = 0.0
    given: Any = {**SCOPE, "budget": {"maxEntries": 10_000, "maxBytes": 10_000_000, "maxTokens": 1_000_000}}
    print("| items | read | qualify |\n| --- | --- | --- |")
    for n_items in (625, 1_250, 2_500, 5_000):
        items = [item(str(n), f"receipt {n} of the month, paid in full by the customer") for n in range(n_items)]
        asked = request(items, given)
        reading = best(lambda items=items: request(items, given))
        qualifying = best(lambda asked=asked: qualify(asked.supplied, asked.eligibility, by_characters))
        print(f"| {n_items:,} | {reading:.0f} ms | {qualifying:.0f} ms |")
    return int(qualifying > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
