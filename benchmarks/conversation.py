"""What compaction of long conversations does: when it fires, what it keeps, how long it takes, what stays cached.

    python benchmarks/conversation.py                    # all parts
    python benchmarks/conversation.py windows needles held-out speed prefix

`windows`: how full the window is when the warning and the compaction fire, for seven windows; fails when they are more
than 1 off 80 and 90. `needles`: which of 40 planted facts are kept; fails when the digest keeps less than 70 % of those
that name a path, an identifier or a number at a fourth of the size; `held-out`: the same with other seeds, and in a
manner that the digest was not made with. `speed`: processor time of compacting 200,000 tokens without a model, nothing
counted before; fails when the best of seven runs takes over 300 ms. `prefix`: the part of thirty prompts that begins as
the one before did; fails under 90 % for a client that sends messages back as they were.
"""

from __future__ import annotations

import asyncio
import gc
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from talk import HELD_OUT, HELD_OUT_SEEDS, KINDS, MANNERS, NAMED, Fact, made

from haversack import pipeline, tokens, uris
from haversack.compact import CompactConfig, Held, Written, compact
from haversack.conversation.extract import digest
from haversack.session import open_session
from haversack.templates.chat import message_tokens
from haversack.tokens import load_counter
from haversack.types import (
    Folder,
    Message,
    Request,
    Role,
    Room,
    Settings,
    Snapshot,
    WindowState,
)
from haversack.workspace import Workspace

WINDOWS = (4_000, 8_000, 16_000, 32_000, 128_000, 200_000, 1_000_000)
MODEL = "openai/gpt-4.1"
COUNTER = load_counter("o200k")


def main(argv: Sequence[str]) -> int:
    wanted = argv or list(PARTS)
    results = [PARTS[name]() for name in wanted]
    return 0 if all(results) else 1


# --- when it fires ------------------------------------------------------------------------------------------------


def windows() -> bool:
    print("| window | warning at | compaction at |\n| --- | --- | --- |")
    good = True
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for window in WINDOWS:
            place = Folder("demo", uris.from_path(folder), folder)
            workspace = Workspace(Snapshot((place,), {}, Settings(context_window=window), 0), {}, pool)

            def state(n: int, window: int = window, workspace: Workspace = workspace) -> tuple[WindowState, float]:
                roles = ((Role.USER, Role.ASSISTANT)[at % 2] for at in range(n))
                history = tuple(Message(role, _sized(at, window)) for at, role in enumerate(roles))
                request = Request("and now?", history=history, model=MODEL)
                bundle = asyncio.run(pipeline.run(request, workspace))
                past = bundle.history
                return past.state, 100 * (past.used - past.tokens_after + past.tokens_before) / window

            warning = _first(lambda n: state(n)[0] is not WindowState.OK)
            compaction = _first(lambda n: state(n)[0] is WindowState.COMPACTED)
            shown = [state(warning)[1], state(compaction)[1]]
            good = good and abs(shown[0] - 80) <= 1 and abs(shown[1] - 90) <= 1
            print(f"| {window:,} | {shown[0]:.2f} % | {shown[1]:.2f} % |", flush=True)
    return good


def _sized(at: int, window: int) -> str:
    """A message of about a third of a percent of the window."""
    return f"{at} " + "word " * (window // 320)


def _first(is_so: Callable[[int], bool]) -> int:
    low, high = 4, 400
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_so(middle) else (middle + 1, high)
    return low


# --- what is kept -------------------------------------------------------------------------------------------------


def needles() -> bool:
    good = True
    for manner in MANNERS:
        messages, facts = made(manner, COUNTER.count, 100_000)
        costs = [message_tokens(message, COUNTER) for message in messages]
        total = sum(costs)
        print(f"\n{manner}: {len(messages)} messages, {total:,} tokens, {sum(KINDS.values())} facts\n")
        print("| what | tokens | kept | " + " | ".join(KINDS) + " |")
        print("| --- | --- | --- |" + " --- |" * len(KINDS))
        for name, budget in (("a half", total // 2), ("a fourth", total // 4), ("a tenth", total // 10)):
            room = Room(budget, budget, budget)
            rows: list[tuple[str, Sequence[Message] | None]] = [
                ("without a model", _compacted(messages, room)),
                ("batches, stand-in model", _compacted(messages, room, stand_in=True)),
                ("oldest half, stand-in model", _compacted(messages, room, stand_in=True, batches=False)),
                ("drop the oldest", _newest(messages, costs, budget)),
                ("head and tail", _ends(messages, costs, budget)),
            ]
            for what, kept in rows:
                if kept is None:
                    continue
                named = _row(f"{what}, {name}", kept, facts)
                if what == "without a model" and name == "a fourth":
                    good = good and named >= 0.7
        early = Room(total - 1, total - 1, int(0.7 * total))
        _row("markers for tool text alone", _compacted(messages, early) or (), facts)
        alone = digest(messages[:-4], total // 4, COUNTER)
        named = _row("digest alone, a fourth", (Message(Role.USER, alone),), facts)
        good = good and named >= 0.7
    return good


def held_out() -> bool:
    """Facts kept at a fourth of the size, in conversations that the digest was not made with."""
    print("\n| manner | seed | what | kept of what names something | dropping the oldest | head and tail |")
    print("| --- | --- | --- | --- | --- | --- |")
    good = True
    for manner in HELD_OUT:
        for seed in HELD_OUT_SEEDS:
            messages, facts = made(manner, COUNTER.count, 100_000, seed)
            costs = [message_tokens(message, COUNTER) for message in messages]
            budget = sum(costs) // 4
            others = [_named(_newest(messages, costs, budget), facts), _named(_ends(messages, costs, budget), facts)]
            alone = (Message(Role.USER, digest(messages[:-4], budget, COUNTER)),)
            tier = _compacted(messages, Room(budget, budget, budget)) or ()
            for what, kept in (("without a model", tier), ("digest alone", alone)):
                named = _named(kept, facts)
                good = good and named >= 0.7
                print(f"| {manner} | {seed} | {what} | {named:.0%} | {others[0]:.0%} | {others[1]:.0%} |", flush=True)
    return good


def _named(kept: Sequence[Message], facts: Sequence[Fact]) -> float:
    lines = [line for message in kept for line in message.content.split("\n")]
    wanted = [fact for fact in facts if fact.kind in NAMED]
    return sum(fact.is_in(lines) for fact in wanted) / len(wanted)


def _row(what: str, kept: Sequence[Message], facts: Sequence[Fact]) -> float:
    """Prints one row; the part of the facts kept that name something."""
    lines = [line for message in kept for line in message.content.split("\n")]
    held = {kind: [fact.is_in(lines) for fact in facts if fact.kind == kind] for kind in KINDS}
    cost = sum(message_tokens(message, COUNTER) for message in kept)
    share = sum(map(sum, held.values())) / sum(map(len, held.values()))
    each = " | ".join(f"{sum(found)}/{len(found)}" for found in held.values())
    print(f"| {what} | {cost:,} | {share:.0%} | {each} |", flush=True)
    return sum(sum(held[kind]) for kind in NAMED) / sum(len(held[kind]) for kind in NAMED)


def _compacted(
    messages: Sequence[Message], room: Room, stand_in: bool = False, batches: bool = True
) -> Sequence[Message] | None:
    """The stand-in for a model quotes what it was given, within what it was allowed: it knows no more than the digest,
    and shows what the tiers do with an answer."""
    held = Held(model=stand_in)
    for _ in range(3):
        result = compact(messages, room, COUNTER, CompactConfig(), held)
        if not result.wanted:
            break
        keys = frozenset(batch.key for batch in result.wanted)
        if not batches and len(held.failed) == 0:
            held = replace(held, failed=keys)
            continue
        new = {
            batch.key: Written(digest(_read(batch.text), batch.most, COUNTER), "stand-in") for batch in result.wanted
        }
        held = replace(held, written={**held.written, **new})
    else:
        return None
    expected = ("MULTI_CHUNK" if batches else "PARTIAL") if stand_in else ""
    return result.messages if not expected or result.tier.name == expected else None


def _read(prompt: str) -> list[Message]:
    """The messages that a model is shown, without the order to summarize them."""
    parts = re.split(r"\n\n(?=(?:user|assistant|tool): )", prompt.partition("To summarize:")[2] or prompt)
    found = [part.strip().partition(": ") for part in parts]
    said = [Message(Role(role), text) for role, _, text in found if role in ("user", "assistant", "tool")]
    return said if len(said) > 2 else [Message(Role.USER, prompt)]  # too long to be shown: a digest already


def _newest(messages: Sequence[Message], costs: Sequence[int], budget: int) -> Sequence[Message]:
    kept, left = [], budget
    for message, cost in zip(reversed(messages), reversed(costs), strict=True):
        if cost > left:
            break
        kept.append(message)
        left -= cost
    return kept[::-1]


def _ends(messages: Sequence[Message], costs: Sequence[int], budget: int) -> Sequence[Message]:
    """Half of the budget from the start, the rest from the end."""
    head: list[Message] = []
    left = budget // 2
    for message, cost in zip(messages, costs, strict=True):
        if cost > left:
            break
        head.append(message)
        left -= cost
    tail = _newest(messages[len(head) :], costs[len(head) :], budget - budget // 2 + left)
    return [*head, *tail]


# --- how long it takes --------------------------------------------------------------------------------------------


def speed() -> bool:
    histories = {manner: made(manner, COUNTER.count, 200_000)[0] for manner in MANNERS}
    print("\n| history of 200,000 tokens | compacted to | median | best | next turn |\n| --- | --- | --- | --- | --- |")
    good = True
    for manner, messages in histories.items():
        for share in (0.65, 0.25):
            limit = int(200_000 * share)
            room = Room(limit, limit, int(limit * 0.65))
            cold: list[float] = []
            warm: list[float] = []
            for _ in range(7):
                tokens.load_counter.cache_clear()
                fresh = load_counter("o200k")
                fresh.count("the tokenizer is loaded")
                cold.append(_timed(messages, room, fresh))
                longer = [*messages, Message(Role.ASSISTANT, "done"), Message(Role.USER, "go on")]
                warm.append(_timed(longer, room, fresh))
            good = good and min(cold) <= 300
            print(
                f"| {manner} | {share:.0%} | {statistics.median(cold):.0f} ms | {min(cold):.0f} ms "
                f"| {statistics.median(warm):.0f} ms |",
                flush=True,
            )
    return good


def _timed(messages: Sequence[Message], room: Room, counter: tokens.TokenCounter) -> float:
    gc.collect()
    start = time.process_time()
    compact(messages, room, counter, CompactConfig())
    return 1_000 * (time.process_time() - start)


# --- what stays cached --------------------------------------------------------------------------------------------

TURNS = (
    "How is the room of the conversation decided?",
    "Which stage redacts secrets?",
    "Where are token counts cached?",
    "What does the digest keep?",
    "How is a route chosen?",
    "What is a barred message?",
)
ANSWER = (
    "It is decided in the module that you see above: the function takes the settings and the route, works out the "
    "room, and hands it on. Two callers rely on that; the tests beside it show each case. "
)


def prefix() -> bool:
    """Thirty questions about this repository's own source, with its real index."""
    print("\n| client sends back | share of all characters | mean of the turns | least | last |")
    print("| --- | --- | --- | --- | --- |")
    whole = asyncio.run(_thirty_turns(keep_context=True))
    bare = asyncio.run(_thirty_turns(keep_context=False))
    for name, turns in (("the messages as they were", whole), ("its bare questions", bare)):
        shares = [same / total for same, total in turns]
        overall = sum(same for same, _ in turns) / sum(total for _, total in turns)
        mean = statistics.mean(shares)
        print(f"| {name} | {overall:.1%} | {mean:.1%} | {min(shares):.1%} | {shares[-1]:.1%} |")
    return sum(same for same, _ in whole) / sum(total for _, total in whole) >= 0.9


async def _thirty_turns(keep_context: bool) -> list[tuple[int, int]]:
    folder = Path(__file__).parents[1] / "server" / "haversack"
    found: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as cache:
        async with open_session(Path(cache)) as session:
            session.add_folder(uris.from_path(str(folder)))
            session.start_indexing()
            await session.wait_ready()
            history: tuple[Message, ...] = ()
            for turn in range(30):
                text = f"{TURNS[turn % len(TURNS)]} ({turn})"
                request = Request(text, history=history, model=MODEL, budget_tokens=2_000, conversation="thirty")
                bundle = await session.context(request)
                assert bundle.history.tier.name == "NONE"
                if bundle.manifest.prefix is not None and bundle.manifest.prefix.known:
                    found.append((bundle.manifest.prefix.shared, bundle.manifest.prefix.total))
                asked = bundle.prompt.messages[-1] if keep_context else Message(Role.USER, text)
                history = (*history, asked, Message(Role.ASSISTANT, ANSWER * 4))
    return found


PARTS: dict[str, Callable[[], bool]] = {
    "windows": windows,
    "needles": needles,
    "held-out": held_out,
    "speed": speed,
    "prefix": prefix,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
