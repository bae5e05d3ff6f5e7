"""How long the manifest of many candidates takes to make and hash, and its record to make and write.

    python benchmarks/manifest.py [--candidates 500] [--runs 50]

Processor time of this thread, so that a busy machine does not count. Fails when the median for the manifest is over
its limit: it is on the way of every answer. The record is written after the answer; its figures have no limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from haversack.assemble import Costs
from haversack.manifest import Circumstances, record
from haversack.mark import mark
from haversack.pack import pack
from haversack.pipeline import _token_use
from haversack.policy.privacy import Privacy
from haversack.record_form import Question, Record, make_record
from haversack.records import Keep, Records
from haversack.score import score
from haversack.tokens import counter
from haversack.types import (
    Bundle,
    Candidate,
    CompactTier,
    Confidence,
    Detail,
    FileText,
    Folder,
    Form,
    History,
    Intent,
    Kind,
    Manifest,
    Model,
    Plan,
    Prompt,
    Request,
    Route,
    Settings,
    Snapshot,
    Source,
)

# Milliseconds for 500 candidates; a fifth of what a whole answer takes.
LIMIT = 10.0
LINES = tuple(f"    total = add(total, item_{at})  # a line like any other\n" for at in range(60))


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed of manifests and records")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    make, keep = prepared(options.candidates)
    manifest = median(make, options.runs)
    print(f"manifest of {options.candidates} candidates, made and hashed: {manifest:.2f} ms (limit {LIMIT:.0f})")
    question = keep(make())
    print(f"its record, made: {median(lambda: make_record('a' * 32, question, b'k' * 32), options.runs):.2f} ms")
    made = make_record("a" * 32, question, b"k" * 32)
    print(f"its record, written: {written(made, options.runs):.2f} ms, {len(made.document) / 1_000:.0f} KB")
    return 0 if manifest <= LIMIT else 1


def median(work: Callable[[], object], runs: int) -> float:
    """Milliseconds of this thread's processor time, after one run that does not count."""
    work()
    spent: list[float] = []
    for _ in range(runs):
        start = time.thread_time()
        work()
        spent.append(1_000 * (time.thread_time() - start))
    return statistics.median(spent)


def prepared(n_candidates: int) -> tuple[Callable[[], Manifest], Callable[[Manifest], Question]]:
    """What makes the manifest, and what makes a question to record of it; all stages before are done."""
    request = Request("How is the total computed?")
    plan = Plan(
        *(request, True, False, Intent.CHAT, (), Confidence.HIGH, "a benchmark", ("total", "computed"), (), ()),
        sources=((Source.HYBRID, 1.0),),
        mentions=(),
    )
    settings, folder = Settings(), Folder("ws", "file:///ws", "/ws")
    marked = mark(tuple(candidate(at) for at in range(n_candidates)), plan, Privacy.compile(settings))
    scored = score(marked, plan)
    model = Model("a-model", "local", "o200k", 32_000, 4_000, "o200k", 16_000, local=True)
    way = Route(model, 32_000, "model", 4_000)
    count = counter(way.model.tokenizer)
    packed = pack(scored, plan, 16_000, count)
    use = _token_use(way, Costs(100, 0, 10, packed.used), request, packed.budget, count)
    circumstances = Circumstances(use, folders=("ws",))
    bundle = Bundle(
        *("completed", Prompt((), 0), packed.blocks, way, record(scored, packed, plan, circumstances)),
        *(History((), CompactTier.NONE, 0, 0), "", ()),
    )
    snapshot = Snapshot((folder,), {}, settings, time.time())
    return (
        lambda: record(scored, packed, plan, circumstances),
        lambda manifest: Question(request, snapshot, replace(bundle, manifest=manifest)),
    )


def candidate(at: int) -> Candidate:
    """A passage of a file of its own, told from the others by its number."""
    path = f"src/package_{at % 20}/module_{at}.py"
    file = FileText("ws", path, (f"def function_{at}():\n", *LINES), "python", f"{at:032x}")
    return Candidate(
        id=f"hybrid:ws/{path}:1-60",
        source=Source.HYBRID,
        kind=Kind.CODE,
        title=path,
        relevance=1 / (1 + at),
        parts=(("hybrid.words", 0.4), ("hybrid.meaning", 0.6), ("hybrid.scale", -1.0 + 1 / (1 + at))),
        why="words: total, computed",
        file=file,
        forms=(Form(Detail.FULL, ((0, 61),)), Form(Detail.SIGNATURE, ((0, 1),))),
        origins=(f"ws/{path}",),
        file_rank=at,
    )


def written(made: Record, runs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store, ids = Records(Path(folder)), iter(range(runs + 1))
        return median(lambda: store.add("/ws", replace(made, id=f"{next(ids)}"), Keep(made.time, 30)), runs)


if __name__ == "__main__":
    sys.exit(main())
