"""How long it takes to match a turn against routing rules: `python benchmarks/routing.py`.

A thousand rules against ten thousand paths. Cold: nothing compiled, no path seen. Warm: the rules and paths of the turn
before, as equal values read anew. Processor time, since nothing waits. Ends with 1 when warm is over the limit.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time

from haversack.policy import rules as routing
from haversack.types import Intent, RoutingRule

LIMIT_MS = 10.0
AREAS = ("src", "lib", "server", "web", "docs", "tests", "tools", "infra")
ENDINGS = ("py", "ts", "go", "rs", "md", "sql", "yaml", "java")


def make_rules(count: int, chance: random.Random) -> tuple[RoutingRule, ...]:
    """Globs of the usual kinds: a folder, a folder of any place, an ending, a file by name, one with wildcards."""
    return tuple(
        RoutingRule(
            name=f"rule {at}",
            model="openai/gpt-4o",
            priority=chance.choice((10, 100, 1_000)),
            intent=chance.choice((None, *Intent)),
            paths=tuple(_glob(chance) for _ in range(chance.randint(1, 3))),
        )
        for at in range(count)
    )


def make_paths(count: int, chance: random.Random) -> tuple[str, ...]:
    return tuple(
        f"{chance.choice(AREAS)}/m{chance.randrange(200)}/p{chance.randrange(40)}/f{at}.{chance.choice(ENDINGS)}"
        for at in range(count)
    )


def measure(n_rules: int, n_paths: int, rounds: int) -> tuple[float, float]:
    """Medians of cold and warm, in milliseconds."""
    cold: list[float] = []
    warm: list[float] = []
    for at in range(rounds):
        rules, paths = make_rules(n_rules, random.Random(at)), make_paths(n_paths, random.Random(-at - 1))
        cold.append(_timed(rules, paths))
        for _ in range(10):
            again = make_rules(n_rules, random.Random(at))
            warm.append(_timed(again, paths))
    return statistics.median(cold), statistics.median(warm)


def _timed(rules: tuple[RoutingRule, ...], paths: tuple[str, ...]) -> float:
    start = time.process_time()
    routing.match(rules, Intent.PLAN, paths)
    return 1_000 * (time.process_time() - start)


def _glob(chance: random.Random) -> str:
    area, module = chance.choice(AREAS), f"m{chance.randrange(400)}"
    return chance.choice(
        (
            f"{area}/{module}/**",
            f"**/{module}/p{chance.randrange(80)}/*.{chance.choice(ENDINGS)}",
            f"*.{chance.randrange(50)}.{chance.choice(ENDINGS)}",
            f"f{chance.randrange(20_000)}.py",
            f"{area}/*/p{chance.randrange(80)}/f[0-9]*.{chance.choice(ENDINGS)}",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--paths", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cold, warm = measure(options.rules, options.paths, options.rounds)
    print(f"{options.rules:,} rules x {options.paths:,} paths: cold {cold:,.0f} ms, warm {warm:.2f} ms")
    if warm > LIMIT_MS:
        print(f"over {LIMIT_MS:g} ms warm")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
