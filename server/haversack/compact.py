"""Shrinks a conversation into its room, tier by tier, no further than needed, and never below what must stay.

Tiers, mildest first; the first that gets there is taken, and each is tried once:

- `TOOL_STRIP`: long tool results and old context become markers.
- `MULTI_CHUNK`: batches of turns, oldest first, become summaries by a model; `PARTIAL`: the oldest half becomes one.
- `PLAIN_FALLBACK`: the oldest turns become a digest in their own words, made without a model; it always fits.

Summaries are made of the messages as the client sent them, also where an earlier tier stripped those. This stage asks
no model: what it is given as written it uses, what it would need it names as `wanted`, and the caller may come again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from haversack.conversation.batches import Cut, cut, oldest_half
from haversack.conversation.exchanges import exchanges, key_of, n_stood_for, untouchable
from haversack.conversation.extract import digest, heading
from haversack.conversation.shape import shaped
from haversack.conversation.strip import stripped
from haversack.policy.privacy import UNNAMED_ORIGIN
from haversack.templates.chat import Counter, message_tokens
from haversack.types import (
    Batch,
    CompactTier,
    HaversackError,
    History,
    Message,
    Role,
    Room,
    Settings,
    Summary,
    WindowState,
)

# The part of the aim that a digest may take. While most of the conversation fits, most of the room stays for whole
# turns; the less of it fits, the more of what was said is in the digest alone.
LEAST_DIGEST, MOST_DIGEST = 0.4, 0.8
# A digest takes at most this part of what it stands for, so that every fold makes real room.
MOST_OF_SOURCES = 0.5


@dataclass(frozen=True, slots=True)
class CompactConfig:
    keep_recent: int = 4
    large_tool_text: int = 200
    family: str = ""

    @classmethod
    def of(cls, settings: Settings, family: str) -> CompactConfig:
        return cls(settings.keep_recent, settings.large_tool_result, family)


@dataclass(frozen=True, slots=True)
class Written:
    """A summary that a model wrote, and which model."""

    text: str
    by: str


@dataclass(frozen=True, slots=True)
class Held:
    """What is known from outside: summaries by key of their batch, keys that no model could summarize, the summaries
    of the last turn, and places in the history that no model but the prompt's own may read.

    `model`: there is a model to write summaries; without one its tiers are skipped. `remote`: it runs elsewhere.
    """

    model: bool = False
    remote: bool = False
    written: Mapping[str, Written] = field(default_factory=dict[str, Written])
    failed: frozenset[str] = frozenset()
    earlier: tuple[Summary, ...] = ()
    earlier_tier: CompactTier = CompactTier.NONE
    barred: frozenset[int] = frozenset()
    private: frozenset[int] = frozenset()  # places of messages whose text no remote model may ever read


NONE_HELD = Held()


def compact(
    history: Sequence[Message],
    room: Room,
    counter: Counter,
    config: CompactConfig = CompactConfig(),
    held: Held = NONE_HELD,
) -> History:
    """The history within `room.limit` tokens, by the mildest tier that gets there; message order is kept.

    Untouched: the most recent messages, pinned ones, and system messages. A tool call and its results stay or go
    together. Raises `context_window_exceeded` when what must stay does not fit.
    """
    work = _Work.of(history, counter, config, held)
    if work.before <= room.limit:
        near = work.before > room.warning
        ahead = _missing(work, _needed(work, room)) if near and held.model else ()
        state = WindowState.WARNING if near else WindowState.OK
        return History(
            work.given, CompactTier.NONE, work.before, work.before, near, ahead=ahead, state=state, used=work.before
        )
    wanted: tuple[Batch, ...] = ()
    for tier, step in TIERS:
        draft = step(work, room)
        wanted = wanted or draft.wanted
        if draft.done and work.cost(draft.folds) <= room.limit:
            return _history(work, draft.tier or tier, draft.folds, wanted)
    raise _too_large(work, room)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a tier proposes. Without `done` it can do nothing; `wanted` says which summaries it lacks for more."""

    folds: tuple[Summary, ...] = ()
    wanted: tuple[Batch, ...] = ()
    done: bool = True
    tier: CompactTier | None = None  # where it is an earlier turn's result


NOTHING = _Draft(done=False)


@dataclass(slots=True)
class _Work:
    """The conversation on the table: messages in the shape their model takes, with what each costs."""

    given: tuple[Message, ...]
    places: tuple[int, ...]  # of each message in the history as given
    costs: tuple[int, ...]
    fixed: frozenset[int]
    config: CompactConfig
    counter: Counter
    held: Held
    short: tuple[Message, ...]  # the messages as they are kept: stripped, once that tier has run
    short_costs: tuple[int, ...]

    @classmethod
    def of(cls, history: Sequence[Message], counter: Counter, config: CompactConfig, held: Held) -> _Work:
        shape = shaped(history, config.family)
        given = shape.messages
        costs = tuple(message_tokens(message, counter) for message in given)
        fixed = untouchable(given, config.keep_recent)
        return cls(given, shape.places, costs, fixed, config, counter, held, given, costs)

    def strip(self) -> None:
        names = {call.id: call.name for message in self.given for call in message.tool_calls}
        limit = self.config.large_tool_text
        short, costs = list(self.given), list(self.costs)
        for at, message in enumerate(self.given):
            less = message if at in self.fixed else stripped(message, names.get(message.tool_call_id, ""), limit)
            # Fewer characters can be more tokens: a marker has to pay in what is counted.
            if less is not message and (cost := message_tokens(less, self.counter)) < costs[at]:
                short[at], costs[at] = less, cost
        self.short, self.short_costs = tuple(short), tuple(costs)

    @property
    def before(self) -> int:
        return sum(self.costs)

    def cost(self, folds: Sequence[Summary]) -> int:
        gone = {at for fold in folds for at in fold.sources}
        left = sum(cost for at, cost in enumerate(self.short_costs) if at not in gone)
        return left + sum(fold.tokens_after for fold in folds)

    def is_barred(self, sources: Sequence[int]) -> bool:
        return any(self.places[at] in self.held.barred or self.given[at].sealed for at in sources)

    def folded(self, sources: Sequence[int], text: str, by: str, key: str) -> Summary:
        """The message that stands for the ones at `sources`: it quotes whatever they quoted."""
        messages = [self.given[at] for at in sources]
        ids = tuple(message.id for message in messages if message.id)
        stands_for = tuple(dict.fromkeys(each for m in messages for each in (*m.summary_of, m.id) if each))
        origins = tuple(dict.fromkeys(origin for message in messages for origin in message.origins))
        if UNNAMED_ORIGIN not in origins and any(self.places[at] in self.held.private for at in sources):
            origins = (*origins, UNNAMED_ORIGIN)
        message = Message(Role.USER, text, origins=origins, summary_of=stands_for)
        before = sum(self.costs[at] for at in sources)
        return Summary(key, tuple(sources), ids, by, message, before, message_tokens(message, self.counter))


Step = Callable[[_Work, Room], _Draft]


def strip_tools(work: _Work, room: Room) -> _Draft:
    """Long tool results and arguments of older turns become markers that name the tool and the size."""
    del room
    work.strip()
    return _Draft()


def keep_earlier(work: _Work, room: Room) -> _Draft:
    """The summaries of the last turn, where the client sent their messages again: the prompt keeps its head."""
    del room
    at_of = {place: at for at, place in enumerate(work.places)}
    folds: list[Summary] = []
    for summary in work.held.earlier:
        sources = tuple(at_of.get(place, -1) for place in summary.sources)
        if not sources or min(sources) < 0 or work.fixed.intersection(sources):
            return NOTHING
        if key_of([work.given[at] for at in sources], summary.key.partition(":")[0]) != summary.key:
            return NOTHING
        folds.append(work.folded(sources, summary.message.content, summary.by, summary.key))
    return _Draft(tuple(folds), tier=work.held.earlier_tier) if folds else NOTHING


def summarize_batches(work: _Work, room: Room) -> _Draft:
    """As many batches as needed, oldest first, each in the words of a model; all of them, or none."""
    needed = _needed(work, room) if work.held.model else ()
    if not needed or any(each.batch.key in work.held.failed for each in needed):
        return NOTHING
    missing = _missing(work, needed)
    if missing:
        return _Draft(wanted=missing, done=False)
    return _Draft(tuple(_summary(work, each) for each in needed))


def summarize_half(work: _Work, room: Room) -> _Draft:
    """The oldest half in the words of a model; it is asked for once it is known that batches do not do."""
    if not work.held.model:
        return NOTHING
    half = oldest_half(work.given, work.costs, work.fixed, room.limit, work.counter)
    if half is None or half.batch.key in work.held.failed or work.is_barred(half.sources):
        return NOTHING
    if half.batch.key not in work.held.written:
        return _Draft(wanted=(half.batch,), done=False)
    return _Draft((_summary(work, half),))


def plain_digest(work: _Work, room: Room) -> _Draft:
    """The oldest exchanges become one digest; as few as needed are folded, each with its calls and results."""
    most = int(room.aim * min(MOST_DIGEST, max(LEAST_DIGEST, 1 - room.aim / max(1, work.before))))
    rest = sum(work.short_costs)
    sources: list[int] = []
    for group in exchanges(work.given):
        if sources and rest + most <= room.aim:
            break
        if not work.fixed.intersection(group):
            sources.extend(group)
            rest -= sum(work.short_costs[at] for at in group)
    if not sources:
        return NOTHING
    messages = [work.given[at] for at in sorted(sources)]
    shrunk = int(MOST_OF_SOURCES * sum(work.costs[at] for at in sources))
    budget = min(room.limit - rest, max(most, room.aim - rest), shrunk)
    text = digest(messages, budget - message_tokens(Message(Role.USER, ""), work.counter), work.counter)
    return _Draft((work.folded(sorted(sources), text, EXTRACT, key_of(messages, EXTRACT)),))


# Who wrote a digest, where no model did; also what its key begins with.
EXTRACT = "extract"

TIERS: tuple[tuple[CompactTier, Step], ...] = (
    (CompactTier.TOOL_STRIP, strip_tools),
    (CompactTier.NONE, keep_earlier),  # whatever the last turn's was
    (CompactTier.MULTI_CHUNK, summarize_batches),
    (CompactTier.PARTIAL, summarize_half),
    (CompactTier.PLAIN_FALLBACK, plain_digest),
)


def _needed(work: _Work, room: Room) -> tuple[Cut, ...]:
    """The batches to fold, oldest first, until the aim is reached, at what their summaries cost or may cost."""
    left = sum(work.short_costs)
    needed: list[Cut] = []
    barred = frozenset(at for at in range(len(work.given)) if work.is_barred((at,)))
    for each in cut(work.given, work.costs, work.fixed, room.limit, barred):
        if left <= room.aim:
            break
        left += each.batch.most - sum(work.short_costs[at] for at in each.sources)
        needed.append(each)
    return tuple(needed)


def _missing(work: _Work, needed: Sequence[Cut]) -> tuple[Batch, ...]:
    """Batches that only a model can write and none has written."""
    known = work.held.written
    return tuple(each.batch for each in needed if each.batch.key not in known and not work.is_barred(each.sources))


def _summary(work: _Work, chosen: Cut) -> Summary:
    """In the words of the model; of a batch that no model may read, a digest."""
    key, messages = chosen.batch.key, [work.given[at] for at in chosen.sources]
    if work.is_barred(chosen.sources):
        return work.folded(chosen.sources, digest(messages, chosen.batch.most, work.counter), EXTRACT, key)
    written = work.held.written[key]
    head = heading(sum(n_stood_for(message) for message in messages), f"written by {written.by}")
    return work.folded(chosen.sources, f"{head}\n{written.text}", written.by, key)


def _history(work: _Work, tier: CompactTier, folds: Sequence[Summary], wanted: tuple[Batch, ...]) -> History:
    standing = {fold.sources[0]: fold.message for fold in folds}
    gone = {at for fold in folds for at in fold.sources}
    messages = tuple(
        standing.get(at, message) for at, message in enumerate(work.short) if at in standing or at not in gone
    )
    n_short = sum(1 for at, message in enumerate(work.short) if message is not work.given[at] and at not in gone)
    parts = (f"{n_short} messages shortened" if n_short else "", f"{len(gone)} summarized" if gone else "")
    placed = (
        replace(fold, sources=tuple(work.places[at] for at in fold.sources if work.places[at] >= 0)) for fold in folds
    )
    after = work.cost(folds)
    return History(
        messages,
        tier,
        work.before,
        after,
        warning=True,
        note=f"of {len(work.given)} messages, " + " and ".join(part for part in parts if part),
        summaries=tuple(placed),
        wanted=wanted,
        used=after,
        state=WindowState.COMPACTED,
    )


def _too_large(work: _Work, room: Room) -> HaversackError:
    """What must stay, by how much it is too large, and the message that takes most of it."""
    if not work.given:
        return HaversackError(
            "context_window_exceeded",
            f"What must be in the prompt beside the conversation needs {-room.limit:,} tokens more than there are.",
            "Mention fewer files or a line range, or choose a model with a larger window.",
            needed=-room.limit,
            budget=0,
        )
    needed = sum(work.short_costs[at] for at in work.fixed)
    if len(work.fixed) < len(work.given):  # something that says what was left out must stay as well
        needed += message_tokens(Message(Role.USER, heading(len(work.given), "left out")), work.counter)
    needed = max(needed, room.limit + 1)
    largest = max(work.fixed or range(len(work.given)), key=lambda at: (work.short_costs[at], -at))
    message, size = work.given[largest], work.short_costs[largest]
    name = f"{message.id[:80]}, " if message.id else ""
    return HaversackError(
        "context_window_exceeded",
        f"The recent and pinned part of the conversation needs {needed:,} tokens, {needed - room.limit:,} more than "
        f"there are ({room.limit:,}); the largest message (number {work.places[largest] + 1}, {name}"
        f"{message.role.value}) takes {size:,}.",
        "Shorten that message, unpin messages, start a new conversation, or choose a model with a larger window.",
        needed=needed,
        budget=room.limit,
        largest_message=work.places[largest],
        largest_id=message.id,
        largest_role=message.role.value,
        largest_tokens=size,
    )
