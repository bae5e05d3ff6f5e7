"""The line of inline completion on one screen: from a cursor to a prompt that fits, with its manifest."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from haversack import uris
from haversack.aliases import restricted_otherwise
from haversack.fim.crossfile import find
from haversack.fim.cursor import cursor_of
from haversack.fim.imports import imports_above
from haversack.fim.nouns import Cursor, FimBundle, FimRequest, Finder, Found, Place
from haversack.fim.secrets import without_secrets_around, without_secrets_in
from haversack.fim.snippets import pack_snippets
from haversack.fim.window import Window, window
from haversack.manifest import Circumstances, record
from haversack.mark import mark
from haversack.policy.documents import DocumentGate
from haversack.policy.privacy import Privacy
from haversack.redact import redact_blocks
from haversack.route import candidates, settle
from haversack.templates import fim as template
from haversack.templates.fim import FimFamily, FimFile, FimPrompt
from haversack.tokens import TokenCounter, counter
from haversack.types import (
    ActiveDocument,
    Candidate,
    Confidence,
    Decision,
    Detail,
    Form,
    HaversackError,
    Intent,
    Kind,
    Marked,
    Outcome,
    OverBudget,
    Packed,
    Plan,
    Position,
    Problem,
    Request,
    Route,
    Scored,
    Settings,
    Snapshot,
    Source,
    Timing,
    TokenUse,
)
from haversack.workspace import Workspace

# The row of the document itself; candidates of the finder never have this id.
DOCUMENT_ID = "fim:document"


@dataclass(frozen=True, slots=True)
class LatelyEdited:
    """The places that the open documents were edited at, of the document touched last first."""

    snapshot: Snapshot

    def places(self) -> tuple[Place, ...]:
        found: list[Place] = []
        for uri in self.snapshot.recent:
            document = self.snapshot.documents.get(uris.canonical(uri))
            if document is not None and document.folder is not None and document.path is not None:
                folder, path = document.folder, document.path
                found += [Place(folder, path, lines, edited=True) for lines in document.changed_lines]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class FimServices:
    """What a completion needs besides its workspace. `clock` gives seconds, for the manifest's timings alone."""

    find: Finder = find
    counter: Callable[[str], TokenCounter] = counter
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True, slots=True)
class _Limits:
    prefix: int
    suffix: int
    context: int
    reply: int

    @classmethod
    def of(cls, request: FimRequest, settings: Settings) -> _Limits:
        def or_else(asked: int | None, setting: int) -> int:
            return setting if asked is None else max(0, asked)

        return cls(
            or_else(request.prefix_tokens, settings.fim_prefix_tokens),
            or_else(request.suffix_tokens, settings.fim_suffix_tokens),
            or_else(request.context_tokens, settings.fim_context_tokens),
            or_else(request.reply_tokens, settings.fim_reply_tokens),
        )


@dataclass(frozen=True, slots=True)
class _Fitted:
    prefix: str
    suffix: str
    imports: str
    packed: Packed
    prompt: FimPrompt
    use: TokenUse
    problems: tuple[Problem, ...]


async def complete(
    request: FimRequest,
    prepare: Callable[[Request], Awaitable[tuple[Request, Workspace]]],
    services: FimServices | None = None,
) -> FimBundle:
    """The prompt for one cursor. `prepare` gives the workspace under the rules that count for a request.

    Raises HaversackError, as `cursor_of` and routing do; `fim_restricted` for a document that the model may not read.
    """
    ruled, workspace = await prepare(
        Request(
            "",
            local_only=request.local_only,
            policy=request.policy,
            tenant=request.tenant,
            problems=request.problems,
        )
    )
    asked = replace(request, problems=ruled.problems)
    return await workspace.run(_complete, asked, workspace, services or FimServices())


def _complete(request: FimRequest, workspace: Workspace, services: FimServices) -> FimBundle:
    snapshot, clock = workspace.snapshot, services.clock
    limits = _Limits.of(request, snapshot.settings)
    began = clock()
    cursor = cursor_of(request, workspace)
    # Any model's tokens will do to bound the search; what is found is counted again for the model that reads it.
    found = Found()
    if limits.context:
        found = services.find(cursor, workspace, LatelyEdited(snapshot), limits.context, services.counter("o200k"))
    timings = [*found.timings, Timing("find", "ok", _ms(clock() - began), len(found.candidates))]

    plan = _plan(request, cursor)
    gathered = (_own(cursor), *found.candidates)
    privacy = Privacy.compile(snapshot.settings, tuple(each.key for each in snapshot.folders), snapshot.policy)
    privacy = replace(privacy, known_otherwise=restricted_otherwise(gathered, (), workspace))
    own, *others = mark(gathered, plan, privacy, DocumentGate.of(snapshot, plan.request))
    began = clock()
    job = _Job(cursor, own, tuple(map(_scored, others)), limits, snapshot.settings, services.counter)
    way, fitted = _routed(plan, job, workspace)
    timings.append(Timing("fit", "ok", _ms(clock() - began)))

    problems = (*request.problems, *snapshot.policy.problems, *privacy.problems, *found.problems, *fitted.problems)
    index = {key: {"generation": at, "tier": tier.value} for key, (at, tier) in workspace.searched.items()}
    folders = tuple(each.key for each in snapshot.folders)
    circumstances = Circumstances(fitted.use, tuple(timings), problems, index, folders, way)
    manifest = record((_scored(own), *job.others), fitted.packed, plan, circumstances)
    return FimBundle(
        fitted.prefix,
        fitted.suffix,
        fitted.imports,
        fitted.packed.blocks,
        fitted.prompt,
        way,
        manifest,
        cursor.language,
        problems,
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be fitted into a model's window."""

    cursor: Cursor
    own: Marked
    others: tuple[Scored, ...]
    limits: _Limits
    settings: Settings
    counter: Callable[[str], TokenCounter]


def _routed(plan: Plan, job: _Job, workspace: Workspace) -> tuple[Route, _Fitted]:
    marked = (job.own, *(each.marked for each in job.others))
    try:
        return settle(candidates(plan, marked, workspace.snapshot), partial(_fit, job))
    except HaversackError as error:
        if job.own.restricted and error.code not in ("invalid_params", "context_window_exceeded"):
            raise HaversackError(
                "fim_restricted",
                "This document is restricted, and the model is a remote one: nothing of it is sent.",
                "Name a model on this machine, such as ollama/qwen2.5-coder:7b.",
            ) from error
        raise


def _fit(job: _Job, way: Route) -> _Fitted:
    """The prompt as this model would get it. Raises `context_window_exceeded` when not even its form fits."""
    cursor, count = job.cursor, job.counter(way.model.tokenizer)
    family = template.family_of(way.model.name, job.settings.fim_families)
    path, repo = _shown_path(cursor), cursor.file.folder
    frame = count.count(template.overhead(family, path, repo, cursor.language))
    reply = min(job.limits.reply, way.window // 2)
    room = way.window - reply - frame
    if room <= 0:
        raise OverBudget(frame + reply, way.window, (("the form of the prompt", frame),))
    around = _window(job, count, room, family)
    remote = not way.model.local
    hide = remote and job.settings.redact_secrets
    prefix, suffix, hid = without_secrets_around(cursor, around) if hide else (around.prefix, around.suffix, 0)
    text = around.prefix_tokens + around.suffix_tokens
    # A model without FIM goes on with what it reads, so it reads its own file alone.
    share = min(job.limits.context, room - text) if family is not None else 0
    imports = imports_above(cursor, around.first, share, count)
    imports = without_secrets_in(imports) if hide else imports
    spent = count.count(imports)
    packed = pack_snippets(job.others, cursor, around, share - spent, count, remote=remote)
    packed = redact_blocks(packed, job.others, count, hide=hide)
    files = tuple(FimFile(block.path or block.title, block.text) for block in packed.blocks)
    prompt = template.render(
        family, imports + prefix, suffix, path=path, repo=repo, language=cursor.language, files=files
    )
    used = packed.used + spent
    use = TokenUse(
        window=way.window,
        window_source=way.window_source,
        reply_reserve=reply,
        system=frame,
        tools=0,
        history=0,
        question=text,
        context=used,
        context_budget=max(0, share),
        total=frame + text + used,
        counted="exact" if count.exact else "estimated",
        counter=count.name,
    )
    decision = Decision(DOCUMENT_ID, Outcome.INCLUDED, Detail.FULL, (), text, text)
    packed = replace(packed, decisions=(decision, *packed.decisions))
    problems = _told(way, prompt, hid, plain=family is None)
    return _Fitted(prefix, suffix, imports, packed, prompt, use, problems)


def _window(job: _Job, count: TokenCounter, room: int, family: FimFamily | None) -> Window:
    """The window as the model gets it: a control token that is broken costs more than it did."""
    suffix = job.limits.suffix if family is not None else 0
    around = window(job.cursor, count, job.limits.prefix, suffix, room)
    dearer = sum(
        count.count(clean) - count.count(text)
        for text in (around.prefix, around.suffix)
        if (clean := template.broken(text, family)) != text
    )
    if dearer <= 0:
        return around
    return window(job.cursor, count, job.limits.prefix, suffix, max(1, room - dearer))


def _own(cursor: Cursor) -> Candidate:
    """The document as a candidate: required, so that what keeps it here keeps the model here."""
    file = cursor.file
    origin = f"{file.folder}/{file.path}"
    spans = ((0, len(file.lines)),) if file.lines else ()
    return Candidate(
        DOCUMENT_ID,
        Source.MENTIONS,
        Kind.FILE,
        file.path,
        1.0,
        (),
        "the document at the cursor",
        required=True,
        file=file,
        forms=(Form(Detail.FULL, spans),),
        origins=(origin,) if file.folder else (),
        flags=("unsaved",) if file.unsaved else (),
    )


def _plan(request: FimRequest, cursor: Cursor) -> Plan:
    asked = Request(
        "",
        folder=cursor.file.folder,
        active=ActiveDocument(request.uri, Position(cursor.line, cursor.column)),
        model=request.model,
        local_only=request.local_only,
        providers=request.providers,
        policy=request.policy,
        tenant=request.tenant,
        exclude=request.exclude,
    )
    return Plan(
        request=asked,
        codebase=True,
        broad=False,
        intent=Intent.EDIT,
        categories=(),
        confidence=Confidence.HIGH,
        reason="inline completion",
        terms=(),
        identifiers=(),
        paths=(),
        sources=(),
        mentions=(),
    )


def _scored(marked: Marked) -> Scored:
    return Scored(marked, marked.candidate.relevance, marked.candidate.parts, 0)


def _shown_path(cursor: Cursor) -> str:
    """The path in its folder; of a document outside every folder, the name alone: an address says where somebody is."""
    return cursor.file.path if cursor.file.folder else cursor.file.path.rsplit("/", 1)[-1].rsplit(":", 1)[-1]


def _told(way: Route, prompt: FimPrompt, hid: int, *, plain: bool) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if plain:
        message = f"{way.model.name} is not known to fill in middles: it gets the text before the cursor alone."
        problems.append(
            Problem(
                "fim", "fim_not_supported", message, "Choose a model with a FIM form, such as ollama/qwen2.5-coder:7b."
            )
        )
    if prompt.parted:
        message = "Control tokens in the text were broken by a backslash, so that the model reads them as text."
        problems.append(Problem("fim", "control_tokens_broken", message))
    if hid:
        message = f"{hid} secrets near the cursor were hidden from the remote model."
        problems.append(Problem("redact", "secret_redacted", message, "Take them out, or choose a local model."))
    return tuple(problems)


def _ms(seconds: float) -> float:
    return round(1_000 * seconds, 3)
