"""The whole line on one screen: from a question to a prompt that fits, with its manifest."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import ParamSpec, TypeVar

from haversack import sealed
from haversack.aliases import kept_otherwise, restricted_otherwise
from haversack.assemble import Costs, assemble, fixed_cost, quoting
from haversack.classify import classify
from haversack.compact import NONE_HELD, CompactConfig, Held, compact
from haversack.conversation.shape import named
from haversack.conversations import Conversations
from haversack.gather import Gathered, gather
from haversack.manifest import Circumstances, record, version_hash
from haversack.mark import keep_documents, mark, mark_history, may_not_leave, quotes_of
from haversack.outbound import transport
from haversack.pack import PackConfig, pack
from haversack.policy.documents import DocumentGate
from haversack.policy.eligibility import qualify
from haversack.policy.privacy import Privacy
from haversack.policy.secrets import without_secrets
from haversack.recipes import DOCUMENT, lookup
from haversack.redact import redact_blocks, redact_words
from haversack.room import lower_reserve, raised, shortfall
from haversack.route import candidates, cost_unknown, priced, settle
from haversack.score import Near, score
from haversack.search_terms import widen
from haversack.token_estimate import by_characters
from haversack.tokens import TokenCounter, counter
from haversack.types import (
    Bundle,
    CompactTier,
    History,
    InvalidRequest,
    Kind,
    Manifest,
    Message,
    Packed,
    Plan,
    Problem,
    Prompt,
    Request,
    Route,
    Scored,
    Settings,
    Snapshot,
    Timing,
    TokenUse,
)
from haversack.uris import canonical
from haversack.window import divide
from haversack.workspace import Workspace

P = ParamSpec("P")
T = TypeVar("T")


async def gather_widely(plan: Plan, workspace: Workspace) -> Gathered:
    """All sources; with search words of a secondary model, where the user has named one."""
    settings = workspace.snapshot.settings
    widening = partial(widen, settings=settings, post=transport(settings)) if settings.terms_endpoint else None
    return await gather(plan, workspace, widen=widening)


@dataclass(frozen=True, slots=True)
class Services:
    """What a request needs besides its workspace. `clock` gives seconds and serves the manifest's timings alone."""

    gather: Callable[[Plan, Workspace], Awaitable[Gathered]] = gather_widely
    counter: Callable[[str], TokenCounter] = counter
    pack_config: PackConfig = field(default_factory=PackConfig)
    clock: Callable[[], float] = time.perf_counter
    conversations: Conversations | None = None


# What a reply's status says.
COMPLETED = "completed"
AWAITING = "awaitingDecrypt"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a paused request goes on with: the world as it was when it was asked."""

    plan: Plan
    gathered: Gathered
    workspace: Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Bundle):
    """A reply without content: the client is asked to open `to_decrypt`, then `resume` goes on from here."""

    held: Waiting


async def run(request: Request, workspace: Workspace, services: Services = Services()) -> Bundle:
    """Answers one request, or gives a `Paused` when sealed messages are needed for it.

    Raises HaversackError, which says what the user can do about it.
    """
    watch = _Stopwatch(services.clock)
    plan, gathered = await _found(request, workspace, services, watch)
    bundle = await _decide_with_summaries(plan, gathered, workspace, services, watch)
    if bundle.status == COMPLETED:
        return bundle
    told = {each.name: getattr(bundle, each.name) for each in fields(Bundle)}
    return Paused(**told, held=Waiting(plan, gathered, workspace))


async def resume(paused: Paused, opened: Mapping[str, Message], services: Services = Services()) -> Bundle:
    """The answer to a request that paused, as if its history had been what was chosen of it, in the clear.

    The real sizes count now: where stated ones were too low, the history is compacted again.
    """
    held = paused.held
    chosen = paused.history.messages
    request = replace(held.plan.request, history=named(sealed.with_opened(chosen, opened)))
    plan, watch = replace(held.plan, request=request), _Stopwatch(services.clock)
    snapshot = held.workspace.snapshot
    numbers = sealed.numbers(held.plan.request.history, chosen)
    decide = partial(_decide, plan, held.gathered, snapshot, services, watch, numbers=numbers)
    bundle = await held.workspace.run(decide)
    # What was hidden in messages in the clear before the pause is not there to be found again.
    problems = (*bundle.problems, *(problem for problem in paused.problems if problem not in bundle.problems))
    manifest = replace(bundle.manifest, problems=problems)
    return replace(bundle, history=_both(paused.history, bundle.history), problems=problems, manifest=manifest)


async def _found(
    request: Request, workspace: Workspace, services: Services, watch: _Stopwatch
) -> tuple[Plan, Gathered]:
    lookup(request.recipe)  # an unknown recipe is refused before any work is done
    if (request.recipe == DOCUMENT) is not (request.document is not None):
        raise InvalidRequest("The recipe `document` is for a document that was selected.", "Use `haversack/select`.")
    # Nobody needs a key to find what a question is about, and search words go to services and into the manifest.
    spared = replace(request, text=without_secrets(request.text))
    plan = await workspace.run(watch.timed, "classify", classify, spared, workspace.snapshot, workspace.seen)
    plan = await workspace.run(watch.timed, "qualify", _qualified, plan)
    wanted = plan.sources or request.document is not None
    gathered = await services.gather(plan, workspace) if wanted else Gathered((), (), ())
    asked = replace(plan, request=replace(plan.request, text=request.text))
    return asked, await workspace.run(_traced, gathered, asked.request, workspace)


def _traced(gathered: Gathered, request: Request, workspace: Workspace) -> Gathered:
    """With what is restricted under another name: the last that is asked of the disk."""
    those = gathered.candidates, request.history, workspace
    return replace(gathered, otherwise=restricted_otherwise(*those), kept=kept_otherwise(*those))


async def _decide_with_summaries(
    plan: Plan, gathered: Gathered, workspace: Workspace, services: Services, watch: _Stopwatch
) -> Bundle:
    """Decides, and once more with what a model wrote, where a summary makes for a milder compaction than none."""
    snapshot, conversations = workspace.snapshot, services.conversations
    known = conversations.held(plan.request, snapshot) if conversations else NONE_HELD
    decide = partial(_decide, pausing=True)
    bundle = await workspace.run(partial(decide, plan, gathered, snapshot, services, watch, known=known))
    # Two tiers ask a model, each once.
    for _ in range(2):
        if conversations is None or not bundle.history.wanted:
            break
        start = services.clock()
        known, problems = await conversations.write(bundle.history.wanted, known, snapshot.settings)
        watch.timings.append(Timing("summarize", "ok", round(1_000 * (services.clock() - start), 3)))
        plan = replace(plan, request=replace(plan.request, problems=(*plan.request.problems, *problems)))
        bundle = await workspace.run(partial(decide, plan, gathered, snapshot, services, watch, known=known))
    return bundle


def _qualified(plan: Plan) -> Plan:
    """The plan with a verdict for each supplied item. The texts of those refused or replaced go no further.

    Tokens are estimated from the characters, so that the same items qualify whichever model is chosen later.
    """
    supplied, selection = qualify(plan.request.supplied, plan.request.eligibility, by_characters)
    return replace(plan, request=replace(plan.request, supplied=supplied), selection=selection)


def _decide(
    plan: Plan,
    gathered: Gathered,
    snapshot: Snapshot,
    services: Services,
    watch: _Stopwatch,
    *,
    known: Held = NONE_HELD,
    pausing: bool = False,
    numbers: Sequence[int] = (),
) -> Bundle:
    """Everything after gathering: a function of its arguments, but for the times in the manifest.

    `numbers` are those under which problems name the messages, where they are not counted from 1.
    With `pausing`, it ends where the chosen history has sealed messages: before any text is put together.
    """
    settings = snapshot.settings
    privacy = Privacy.compile(settings, tuple(folder.key for folder in snapshot.folders), snapshot.policy)
    privacy = replace(privacy, known_otherwise=gathered.otherwise)
    gate = replace(DocumentGate.of(snapshot, plan.request), otherwise=gathered.kept)
    marked = watch.timed("mark", mark, gathered.candidates, plan, privacy, gate)
    quotes = quotes_of(marked)
    past, withheld = keep_documents(plan.request.history, gate)
    plan = replace(plan, request=replace(plan.request, history=past))
    chain = watch.timed("route", candidates, plan, marked, snapshot)
    scored = watch.timed("score", score, marked, plan, _near(plan.request, snapshot))

    with_rules = any(item.marked.candidate.kind is Kind.RULE for item in scored)

    def fit(way: Route) -> _Fitted:
        """The prompt's parts as this model would get them."""
        past, held = (
            (plan.request.history, ()) if way.model.local else mark_history(plan.request.history, privacy, quotes)
        )
        request = replace(plan.request, history=past)
        count = services.counter(way.model.tokenizer)
        hide = settings.redact_secrets and not way.model.local
        request, spoken, hid = redact_words(request, settings, count, numbers) if hide else (request, settings, ())
        asked = replace(plan, request=request)
        config = replace(services.pack_config, shares=lookup(request.recipe).shares)
        packing = partial(pack, scored, plan, counter=count, config=config, remote=not way.model.local)
        fixed = fixed_cost(asked, spoken, count, rules=with_rules)
        private = may_not_leave(plan.request.history, privacy, quotes)
        # A remote model's digests are of what it may read.
        kept = private if way.model.local else frozenset[int]()
        memory = replace(known, barred=private if known.remote else frozenset[int](), private=kept)
        shrinking = CompactConfig.of(settings, way.model.family)
        divided = divide(
            request,
            lower_reserve(way, fixed + request.tools_tokens),
            settings,
            fixed=fixed,
            compacting=lambda room: watch.timed("compact", compact, request.history, room, count, shrinking, memory),
            packing=lambda budget: watch.timed("pack", packing, budget=budget),
            required=partial(_required_tokens, scored),
        )
        packed = watch.timed("redact", redact_blocks, divided.packed, scored, count, hide=hide)
        reserve = divided.route.reply_reserve
        return _Fitted(reserve, divided.history, packed, (*held, *hid), count, asked, spoken)

    way, fitted = settle(chain, fit)
    way = replace(way, reply_reserve=fitted.reply_reserve)
    packed, history, count = fitted.packed, fitted.history, fitted.count
    unopened = sealed.asked(plan.request.history, history.messages)
    if unopened and pausing:
        use = _token_use(way, Costs(0, 0, 0, 0), plan.request, packed.budget, count)
        return _awaiting(unopened, history, way, use, (*plan.request.problems, *withheld, *fitted.held))
    prompt, costs = watch.timed("assemble", assemble, packed, history, fitted.plan, fitted.settings, count)
    prompt = quoting(prompt, packed, scored)
    use = _token_use(way, costs, plan.request, packed.budget, count)
    way = priced(way, chain, use.total)
    room = (*shortfall(way, plan.request, packed.budget), *raised(plan.request, packed.budget))
    short = (*room, *cost_unknown(way, chain))
    told = (*plan.request.problems, *snapshot.policy.problems, *privacy.problems, *gate.problems)
    problems = (*told, *gathered.problems, *withheld, *fitted.held, *short)
    folders = tuple(folder.key for folder in snapshot.folders)
    circumstances = Circumstances(use, (*gathered.timings, *watch.timings), problems, gathered.index, folders, way)
    manifest = record(scored, packed, plan, circumstances)
    version = version_hash(prompt, way, plan.request.document.focus if plan.request.document is not None else None)
    return Bundle(COMPLETED, prompt, packed.blocks, way, manifest, history, version, problems, to_decrypt=unopened)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A prompt's parts, fitted into one model's window. `held`: what of the words it may not read.

    `plan` and `settings` are those whose words this model may have.
    """

    reply_reserve: int
    history: History
    packed: Packed
    held: tuple[Problem, ...]
    count: TokenCounter
    plan: Plan
    settings: Settings


async def preview(request: Request, workspace: Workspace, services: Services = Services()) -> Bundle:
    """The decisions of `run` with every text left out. Sealed messages count as they state, and none is opened."""
    watch = _Stopwatch(services.clock)
    plan, gathered = await _found(request, workspace, services, watch)
    bundle = await workspace.run(_decide, plan, gathered, workspace.snapshot, services, watch)
    messages = tuple(replace(message, content="", tool_calls=()) for message in bundle.prompt.messages)
    return replace(
        bundle,
        prompt=replace(bundle.prompt, messages=messages),
        blocks=tuple(replace(block, text="") for block in bundle.blocks),
        history=replace(bundle.history, messages=()),
    )


def _required_tokens(scored: Sequence[Scored], packed: Packed) -> int:
    """What the items that had to be in the context take of it."""
    pairs = zip(scored, packed.decisions, strict=True)
    return sum(decision.tokens_after for item, decision in pairs if item.marked.required)


def _awaiting(
    unopened: tuple[Message, ...], history: History, way: Route, use: TokenUse, held: tuple[Problem, ...]
) -> Bundle:
    """What the client is told while the request waits: the route and what to open, nothing that was gathered."""
    manifest = Manifest((), (), use, held, {}, {}, "")
    return Bundle(AWAITING, Prompt((), 0), (), way, manifest, history, "", held, to_decrypt=unopened)


def _both(chosen: History, opened: History) -> History:
    """What became of the history in both steps: as sealed messages were chosen, and once they were open."""
    tier, note = (chosen.tier, chosen.note) if opened.tier is CompactTier.NONE else (opened.tier, opened.note)
    warning = chosen.warning or opened.warning
    return replace(opened, tier=tier, tokens_before=chosen.tokens_before, note=note, warning=warning)


def _near(request: Request, snapshot: Snapshot) -> Near:
    """The active file and those lately touched, as `folder/path`."""
    names = {
        canonical(uri): f"{document.folder}/{document.path}"
        for uri, document in snapshot.documents.items()
        if document.folder is not None and document.path is not None
    }
    active = names.get(canonical(request.active.uri), "") if request.active else ""
    recent = (names.get(canonical(uri)) for uri in snapshot.recent)
    return Near(active, tuple(dict.fromkeys(name for name in recent if name)))


def _token_use(way: Route, costs: Costs, request: Request, budget: int, count: TokenCounter) -> TokenUse:
    return TokenUse(
        window=way.window,
        window_source=way.window_source,
        reply_reserve=way.reply_reserve,
        system=costs.system,
        tools=request.tools_tokens,
        history=costs.history,
        question=costs.question,
        context=costs.context,
        context_budget=budget,
        total=costs.total + request.tools_tokens,
        counted="exact" if count.exact else "estimated",
        counter=count.name,
    )


@dataclass(slots=True)
class _Stopwatch:
    """Runs stages and notes how long each took."""

    clock: Callable[[], float]
    timings: list[Timing] = field(default_factory=list[Timing])

    def timed(self, name: str, stage: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        start = self.clock()
        result = stage(*args, **kwargs)
        self.timings.append(Timing(name, "ok", round(1_000 * (self.clock() - start), 3)))
        return result
