"""How fast the server is: indexing, answering, and answering while it indexes.

    python benchmarks/speed.py FOLDER [--runs 3] [--semble PYTHON --semble-model DIR] [--big [FILES]] [--json]

Drives a real `haversack serve` process as an editor does. `benchmarks/README.md` says what each figure means.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from big_tree import BIG_FILES, TRIVIAL_LIMIT, while_indexing
from client import Memory, Server, megabytes, summary
from questions import code_files, questions

BUDGETS = (4_000, 16_000)
# Rounds over the questions before the clock counts: caches of a session that has been used a minute.
WARM_UP = 1
ROUNDS = 3
# Changes of a fast typist or a formatter, and the second they come in.
CHANGES = 100
CHANGES_SECONDS = 1.0

SEMBLE = """
import json, sys, time
from semble import SembleIndex
imported = time.perf_counter()
index = SembleIndex.from_path(sys.argv[1], model_path=sys.argv[2] or None)
print(json.dumps([time.perf_counter() - imported, len(index.chunks)]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of the language server on one workspace")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3, help="cold runs; 3")
    parser.add_argument("--semble", default="", metavar="PYTHON", help="a Python that has semble, to index beside us")
    parser.add_argument("--semble-model", default="", metavar="DIR", help="its embedding model")
    parser.add_argument("--big", nargs="?", type=int, const=BIG_FILES, default=0, help="files of a generated tree")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    folder = options.folder.resolve()
    load = os.getloadavg()[0]
    result: dict[str, Any] = {"folder": folder.name, "machine": machine(), "load_before": round(load, 2)}
    with tempfile.TemporaryDirectory() as scratch:
        result["cold"] = cold(folder, Path(scratch), options.runs, options.semble, options.semble_model)
        result |= warm(folder, Path(scratch) / "cold0")
        if options.big:
            result["big"] = while_indexing(Path(scratch), options.big)
    result["load_after"] = round(os.getloadavg()[0], 2)
    print(json.dumps(result, indent=1) if options.json else table(result))
    return 0


# --- indexing ---------------------------------------------------------------------------------------------------


def cold(folder: Path, scratch: Path, runs: int, semble: str, model: str) -> dict[str, Any]:
    """Seconds of each run, ours and semble's in turn so that both meet the same load."""
    list(code_files(folder))  # the first walk brings folders and inodes into memory for both
    found: dict[str, Any] = {"haversack": [], "haversack_start": [], "semble": [], "semble_start": []}
    for run in range(runs):
        if semble and run % 2:
            index_with_semble(folder, scratch / f"semble{run}", semble, model, found)
        with Server(folder, scratch / f"cold{run}") as server, Memory(server.pid) as memory:
            status = server.wait_ready()
            ready = time.perf_counter()
            found["haversack"].append(ready - server.greeted)
            found["haversack_start"].append(server.greeted - server.started)
        found["memory"] = megabytes(memory)
        found |= {key: status[key] for key in ("files", "chunks", "symbols", "vectors")}
        if semble and not run % 2:
            index_with_semble(folder, scratch / f"semble{run}", semble, model, found)
    if semble:
        ours, theirs = statistics.median(found["haversack"]), statistics.median(found["semble"])
        found["ratio_indexing"] = ours / theirs
        whole = [a + b for a, b in zip(found["haversack"], found["haversack_start"], strict=True)]
        other = [a + b for a, b in zip(found["semble"], found["semble_start"], strict=True)]
        found["ratio_whole"] = statistics.median(whole) / statistics.median(other)
    return found


def index_with_semble(folder: Path, cache: Path, python: str, model: str, found: dict[str, Any]) -> None:
    """One run of semble in a process of its own, with an empty cache."""
    before = time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [python, "-c", SEMBLE, str(folder), model]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    took = time.perf_counter() - before
    indexing, found["semble_chunks"] = json.loads(answer.stdout.strip().split("\n")[-1])
    found["semble"].append(indexing)
    found["semble_start"].append(took - indexing)


# --- answering --------------------------------------------------------------------------------------------------


def warm(folder: Path, cache: Path) -> dict[str, Any]:
    """Latency in a session that has been in use, on an index that is there."""
    asked = questions(folder)
    found: dict[str, Any] = {"n_questions": len(asked), "context": {}, "sources": {}}
    with Server(folder, cache) as server, Memory(server.pid) as memory:
        found["restart"] = {"first_answer_ms": server.context(asked[0], BUDGETS[0])[0]}
        server.wait_ready()
        found["restart"]["ready_s"] = time.perf_counter() - server.started
        idle = [server.timed("haversack/index/status", {})[0] for _ in range(200)]
        found["trivial_idle"] = summary(idle)
        for budget in BUDGETS:
            took, sources = ask(server, asked, budget)
            found["context"][str(budget)] = summary(took) | {"slowest": slowest(asked, took)}
            found["sources"][str(budget)] = sources
        found["typing"] = typing(server, folder)
    found["memory"] = megabytes(memory)
    return found


def ask(server: Server, asked: Sequence[str], budget: int) -> tuple[list[float], dict[str, Any]]:
    """Milliseconds of every answer after the warm-up, and of every source and stage as the manifest has it."""
    took: list[float] = []
    stages: dict[str, list[float]] = {}
    for turn in range(WARM_UP + ROUNDS):
        for text in asked:
            milliseconds, result = server.context(text, budget)
            if turn < WARM_UP:
                continue
            took.append(milliseconds)
            timings = result["manifest"]["timings"]
            for timing in timings:
                stages.setdefault(timing["name"], []).append(timing["milliseconds"])
    return took, {name: summary(values) | {"n": len(values)} for name, values in stages.items()}


def typing(server: Server, folder: Path) -> dict[str, Any]:
    """A hundred changes in a second, then a question: does the answer hold the text nobody saved?"""
    path = next(iter(code_files(folder)))
    uri = (folder / path).as_uri()
    text = (folder / path).read_bytes().decode("utf-8", "replace")
    server.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": uri, "languageId": "plaintext", "version": 1, "text": text}},
    )
    began = time.perf_counter()
    start = {"line": 0, "character": 0}
    for number in range(CHANGES):
        change = {"range": {"start": start, "end": start}, "text": f"unsaved_{number:03d} "}
        document = {"uri": uri, "version": number + 2}
        server.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        time.sleep(max(0.0, began + (number + 1) * CHANGES_SECONDS / CHANGES - time.perf_counter()))
    active = {"uri": uri, "position": start}
    milliseconds, result = server.context(f"What does @{path} do?", BUDGETS[0], activeDocument=active)
    served = "".join(block["text"] for block in result["blocks"])
    holds = all(f"unsaved_{number:03d}" in served for number in range(CHANGES))
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    return {"holds_unsaved_text": holds, "context_ms": milliseconds}


# --- figures ----------------------------------------------------------------------------------------------------


def slowest(asked: Sequence[str], took: Sequence[float]) -> list[list[Any]]:
    """The three questions with the slowest median."""
    medians = [(statistics.median(took[place :: len(asked)]), text) for place, text in enumerate(asked)]
    return [[round(value, 1), text] for value, text in sorted(medians, reverse=True)[:3]]


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def table(result: dict[str, Any]) -> str:
    cold, lines = result["cold"], []
    lines.append(f"{result['folder']}: {cold['files']:,} files, {cold['chunks']:,} chunks, {cold['symbols']:,} symbols")
    lines.append(f"{result['machine']}; load {result['load_before']} before, {result['load_after']} after")
    lines += ["", f"| cold, {len(cold['haversack'])} runs | median | best | with start |", "| --- | --- | --- | --- |"]
    for name in ("haversack", "semble"):
        if cold[name]:
            whole = [a + b for a, b in zip(cold[name], cold[f"{name}_start"], strict=True)]
            figures = (statistics.median(cold[name]), min(cold[name]), statistics.median(whole))
            lines.append(f"| {name} | " + " | ".join(f"{each:.2f} s" for each in figures) + " |")
    if "ratio_whole" in cold:
        lines.append(f"| ratio | {cold['ratio_indexing']:.2f} | | {cold['ratio_whole']:.2f} |")
    rows = [(f"context, budget {budget}", figures) for budget, figures in result["context"].items()]
    rows += [("index status, idle", result["trivial_idle"])]
    if "big" in result:
        rows.append(("index status, while indexing", result["big"]))
        if result["big"]["context"]:
            rows.append(("context, while indexing", result["big"]["context"]))
    lines += ["", f"| warm, {result['n_questions']} questions | p50 | p95 | p99 |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {of(each, 'p50')} | {of(each, 'p95')} | {of(each, 'p99')} |" for name, each in rows]
    lines += ["", f"| inside, budget {BUDGETS[0]} | p50 | p95 | asked |", "| --- | --- | --- | --- |"]
    for name, each in result["sources"][str(BUDGETS[0])].items():
        lines.append(f"| {name} | {of(each, 'p50')} | {of(each, 'p95')} | {each['n']} |")
    lines += [
        "",
        "slowest: " + "; ".join(f"{ms} ms {text[:60]!r}" for ms, text in result["context"]["4000"]["slowest"]),
    ]
    restart, typed = result["restart"], result["typing"]
    lines.append(f"restart: first answer {restart['first_answer_ms']:.0f} ms, ready {restart['ready_s']:.2f} s")
    held = "held" if typed["holds_unsaved_text"] else "LOST"
    lines.append(f"{CHANGES} changes in a second: unsaved text {held}, answer {typed['context_ms']:.0f} ms")
    lines.append(f"peak MB: indexing {cold['memory']}, answering {result['memory']}")
    if "big" in result:
        big = result["big"]
        verdict = "pass" if big["p95"] <= TRIVIAL_LIMIT else "FAIL"
        lines.append(
            f"big tree, {big['files']:,} files: {big['indexed']:,} done, {big['n']} requests, max {big['max']:.1f} ms,"
            f" {big['over']} over {TRIVIAL_LIMIT:.0f} ms; p95 within it: {verdict}; peak MB {big['memory']}"
        )
    return "\n".join(lines)


def of(figures: dict[str, float], name: str) -> str:
    return f"{figures[name]:.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
