"""How many deliberate faults in the guards the tests notice: mutation testing, by module.

    make mutants
    make mutants MODULES="mark policy/privacy"
    python benchmarks/mutants.py mark --show       # with what each fault is that no test noticed
    python benchmarks/mutants.py mark --least 0    # figures only
    python benchmarks/mutants.py mark --show --folder /tmp/faults    # again: only what was missed, and what changed

Fails where a module has less than 85 % of its faults noticed. `mutmut` makes the faults, one at a time, and runs the
tests that reach the function. It wants the package in a folder `src` and takes names of faults from paths, so it works
on a copy laid out like that. A timeout counts as noticed (loops without end are); many of them mean a machine too busy.

Sentences are no faults: a test that compared their letters would be the sentence once more. That one is there and what
it is told (`None` in its place, another number, another name) still is.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST = 85.0
# mutmut calls "segfault" also what it had to end for want of time.
NOTICED = ("killed", "timeout", "segfault")

# A plain string on one line with words in it; codes, names and patterns have none.
WORDING = re.compile(r"""[bu]?(["'])(?!\1)(?:.*[\w,:;.`')}])? [A-Za-z`'({].*\1""")


@dataclass(frozen=True, slots=True)
class Group:
    """Modules that the same tests exercise. Few and quick tests: they run for each fault that is not noticed."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = (
    Group(("mark", "policy/privacy", "policy/patterns", "policy/documents"), ("mark", "privacy", "documents_gate")),
    Group(("policy/rules", "policy/turn", "policy/costs"), ("routing_rules", "costs")),
    Group(("policy/demands", "policy/refusals"), ("refusals", "route")),
    Group(("policy/catalogue", "policy/providers"), ("catalogue", "route")),
    Group(("policy/eligibility", "policy/entries", "policy/canonical"), ("eligibility",)),
    Group(("policy/secrets",), ("secrets",)),
    Group(("policy/injection",), ("injection",)),
    Group(("policy/layers", "policy/confinement"), ("policy_document",)),
    Group(("policy/loading",), ("policy_files", "policy_document")),
    Group(("policy/document", "policy/values", "policy/json_reader"), ("policy_document", "policy_findings")),
    Group(("policy/checks", "policy/overlap", "policy/findings"), ("policy_findings",)),
    Group(("route",), ("route", "routing", "routing_rules")),
    Group(("sealed",), ("sealed", "sealed_line")),
    Group(("policy/origins", "policy/quotes"), ("quotes", "mark", "aliases")),
)
EVERY = tuple(module for group in GROUPS for module in group.modules)


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation testing of the guards")
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(EVERY)}; all by default")
    parser.add_argument("--least", type=float, default=LEAST, help="percent noticed that a module must reach")
    parser.add_argument("--show", action="store_true", help="print each fault that no test noticed")
    parser.add_argument("--children", type=int, default=2, help="how many run at once")
    parser.add_argument("--folder", type=Path, help="keep the copy here; the next run with it goes on from its results")
    given = parser.parse_args()
    names = {name.removesuffix(".py") for name in given.modules}
    wanted = {module for module in EVERY if not names or module in names or module.split("/")[-1] in names}
    if unknown := names - wanted - {module.split("/")[-1] for module in wanted}:
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    print("| module | faults | noticed | of these timeouts | missed | score |\n| --- | --- | --- | --- | --- | --- |")
    below: list[str] = []
    for group in GROUPS:
        modules = tuple(module for module in group.modules if module in wanted)
        if modules:
            below += _run(modules, group.tests, given)
    if below:
        print(f"\nLess than {given.least:.0f} % noticed: {', '.join(below)}")
    return 1 if below else 0


def _run(modules: tuple[str, ...], tests: tuple[str, ...], given: argparse.Namespace) -> list[str]:
    """Prints a row for each module, and gives those that are below the limit."""
    with tempfile.TemporaryDirectory(prefix="haversack-mutants-") as folder:
        place = Path(folder)
        if given.folder is not None:
            place = given.folder.resolve() / "-".join(modules).replace("/", ".")
        began, is_known = time.monotonic(), place.exists()
        _lay_out(place, modules, tests)
        verdicts = _judged(place, given.children)
        if is_known and (again := [name for name, verdict in verdicts.items() if verdict not in NOTICED]):
            verdicts = _judged(place, given.children, again)
        below: list[str] = []
        missed: list[str] = []
        for module in modules:
            prefix = f"haversack.{module.replace('/', '.')}.x"
            own = {name: verdict for name, verdict in verdicts.items() if name.startswith(prefix)}
            counts = Counter(own.values())
            noticed = sum(counts[verdict] for verdict in NOTICED)
            score = 100 * noticed / len(own) if own else 100.0
            row = (module, len(own), noticed, counts["timeout"], len(own) - noticed, f"{score:.1f} %")
            print(f"| {' | '.join(map(str, row))} |", flush=True)
            below += [module] if score < given.least else []
            missed += [name for name, verdict in own.items() if verdict not in NOTICED]
        print(f"{', '.join(modules)}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        if given.show:
            for name in missed:
                print(_changed_lines(_mutmut(place, "show", name).stdout), flush=True)
    return below


def _judged(place: Path, children: int, names: Sequence[str] = ()) -> dict[str, str]:
    """Runs the faults of these names, of no names those without a verdict, and gives the verdicts of all."""
    run = _mutmut(place, "run", "--max-children", str(children), *names)
    verdicts = _verdicts(_mutmut(place, "results", "--all", "true").stdout)
    if run.returncode or not verdicts:
        sys.exit(f"mutmut failed:\n{run.stdout[-4_000:]}\n{run.stderr[-4_000:]}")
    return verdicts


def _lay_out(place: Path, modules: tuple[str, ...], tests: tuple[str, ...]) -> None:
    """The server as `src/haversack`, and what tests read; the index is used as it is installed."""
    skipped = shutil.ignore_patterns("__pycache__")
    for source, target in (("server/haversack", "src/haversack"), ("tests", "tests"), ("docs", "docs")):
        shutil.copytree(ROOT / source, place / target, ignore=skipped, dirs_exist_ok=True)
    for module in modules:
        copy = place / f"src/haversack/{module}.py"
        copy.write_text(_without_wording(copy.read_text("utf-8")), "utf-8")
    files = [f"tests/server/test_{name}.py" for name in tests]
    arguments = ["-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=mutants"]
    table = {
        "source_paths": ["src"],
        "only_mutate": [f"src/haversack/{module}.py" for module in modules],
        "also_copy": ["docs"],
        "pytest_add_cli_args": arguments,
        "pytest_add_cli_args_test_selection": files,
    }
    # A list of plain strings is written alike in Python and in TOML, but for quotes.
    lines = [f"{key} = [{', '.join(_quoted(value) for value in values)}]" for key, values in table.items()]
    # Sessions of some tests have threads; processes forked where they ran wait for locks that nobody gives back.
    lines += ['process_isolation = "forkserver"', "timeout_constant = 10.0", "timeout_multiplier = 5.0"]
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (place / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]), "utf-8")


def _without_wording(source: str) -> str:
    """The same program with its sentences in triple quotes, which mutmut leaves alone."""
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type == tokenize.STRING and token.start[0] == token.end[0] and WORDING.fullmatch(token.string):
            row, start, end = token.start[0] - 1, token.start[1], token.end[1]
            prefix, quote, text = token.string.partition(token.string[-1])
            lines[row] = f"{lines[row][:start]}{prefix}{3 * quote}{text[:-1]}{3 * quote}{lines[row][end:]}"
    return "".join(lines)


def _quoted(value: str) -> str:
    return f"'''{value}'''"


def _mutmut(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    environment = {**os.environ, "PYTHONPATH": "", "COLUMNS": "200"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def _verdicts(results: str) -> dict[str, str]:
    return dict(re.findall(r"^ +(\S+): (.+)$", results, re.M))


def _changed_lines(diff: str) -> str:
    """The name of the fault, and the lines that differ."""
    kept = [line for line in diff.split("\n") if line[:1] in "#+-" and line[:3] not in ("+++", "---")]
    return "\n".join(line for line in kept if line)


if __name__ == "__main__":
    sys.exit(main())
