"""Our nouns in the words of the protocol. Ranges name whole lines, so their columns are 0 in every encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import attrs

from haversack import types, uris
from haversack.lsp import conversation, protocol, provider_history, sealed_messages, supplied_messages
from haversack.lsp.protocol import Uint
from haversack.lsp.records import RecordEntry, RecordResult, RecordsResult, RecordSummary, RecordVerifyResult
from haversack.record_form import Record, summary
from haversack.recorder import EntryState, Verification
from haversack.types import Folder
from haversack_index.types import IndexState, IndexStatus

# How far from ready a state is; a workspace is as far as its farthest folder.
_UNREADY = {IndexState.READY: 0, IndexState.DEGRADED: 1, IndexState.INDEXING: 2, IndexState.SCANNING: 3}


def context(
    bundle: types.Bundle, folders: Sequence[Folder], as_given: protocol.ProviderMessages | None = None
) -> protocol.ContextResult:
    """`as_given` is the history in a provider's form, in which the prompt is written as well."""
    roots = {folder.key: folder.root for folder in folders}
    return protocol.ContextResult(
        status=bundle.status,
        prompt=protocol.Prompt(
            messages=tuple(message(each) for each in bundle.prompt.messages),
            tokens=bundle.prompt.tokens,
            stable_chars=bundle.prompt.stable_chars,
            provider_messages=provider_history.written(bundle.prompt.messages, as_given),
        ),
        blocks=tuple(block(each, roots.get(each.folder)) for each in bundle.blocks),
        route=route(bundle.route),
        manifest=manifest(bundle.manifest),
        history=history(bundle.history, bundle.route.window),
        version_hash=bundle.version_hash,
        problems=problems(bundle.problems),
        record_id=bundle.record_id or None,
        to_decrypt=tuple(sealed_message(each) for each in bundle.to_decrypt),
        turn=bundle.turn,
        expires_in=bundle.expires_in,
    )


def history(report: types.History, window: int) -> conversation.HistoryReport:
    return conversation.HistoryReport(
        tier=report.tier,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
        warning=report.warning,
        note=report.note,
        state=report.state,
        used=report.used,
        percent=round(100 * report.used / window, 1),
        summaries=tuple(
            conversation.Summary(
                by=each.by,
                messages=each.sources,
                ids=each.ids,
                origins=each.message.origins,
                tokens_before=each.tokens_before,
                tokens_after=each.tokens_after,
            )
            for each in report.summaries
        ),
    )


def index_status(statuses: Sequence[tuple[Folder, IndexStatus]]) -> protocol.IndexStatusResult:
    """Sums over the folders; the generation grows whenever that of any folder does."""
    each = [status for _, status in statuses]
    skipped: dict[str, int] = {}
    for status in each:
        for reason, count in status.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    return protocol.IndexStatusResult(
        state=max((status.state for status in each), key=_UNREADY.__getitem__, default=IndexState.READY),
        generation=sum(status.generation for status in each),
        files=sum(status.n_files for status in each),
        chunks=sum(status.n_chunks for status in each),
        symbols=sum(status.n_symbols for status in each),
        vectors=sum(status.n_vectors for status in each),
        done=sum(status.done for status in each),
        total=sum(status.total for status in each),
        skipped=skipped,
        folders=tuple(_folder_status(folder, status) for folder, status in statuses),
    )


def records(kept: Sequence[Record]) -> RecordsResult:
    return RecordsResult(tuple(_record_summary(each) for each in kept))


def record(kept: Record) -> RecordResult:
    """The very text that was hashed, so that a client can do the same."""
    return RecordResult(_record_summary(kept), kept.document)


def verification(done: Verification) -> RecordVerifyResult:
    return RecordVerifyResult(
        id=done.record.id,
        hash=done.record.hash,
        verified=not done.faults,
        faults=done.faults,
        entries=tuple(_record_entry(each) for each in done.entries),
    )


def selected(found: types.Selected, folders: Sequence[Folder]) -> protocol.SelectResult:
    whole, card, focus = context(found.bundle, folders), found.identity, found.focus
    span = focus.range if focus is not None else None
    return protocol.SelectResult(
        **{field.name: getattr(whole, field.name) for field in attrs.fields(protocol.ContextResult)},
        identity=protocol.DocumentIdentity(
            folder=card.folder,
            path=card.path,
            title=card.title,
            kind=card.kind,
            status=card.status,
            generation=card.generation,
            lines=card.n_lines,
            characters=card.n_characters,
            gist=card.gist,
        ),
        sections=tuple(
            protocol.DocumentSection(
                id=each.id,
                order=each.order,
                kind=each.kind,
                heading_path=each.heading_path,
                summary=each.summary,
                summary_truncated=each.summary_truncated,
                range=lines(each.lines),
                focus=each.focus,
            )
            for each in found.sections
        ),
        focus_axis=protocol.DocumentFocus(
            focus.section_ids,
            protocol.Range(_place(span.start), _place(span.end)) if span is not None else None,
            focus.quote,
        )
        if focus is not None
        else None,
        truncated=found.truncated,
    )


def _place(position: types.Position) -> protocol.Position:
    return protocol.Position(Uint(position.line), Uint(position.character))


def lines(span: tuple[int, int]) -> protocol.Range:
    """Whole lines, end exclusive, as an LSP range."""
    start, end = span
    return protocol.Range(protocol.Position(Uint(start), Uint(0)), protocol.Position(Uint(end), Uint(0)))


def _record_summary(kept: Record) -> RecordSummary:
    return RecordSummary(**asdict(summary(kept)))


def _record_entry(each: EntryState) -> RecordEntry:
    span = each.entry.get("lines")
    return RecordEntry(
        folder=each.entry.get("folder", ""),
        path=each.entry.get("path"),
        range=lines((span[0], span[1])) if span else None,
        kind=each.entry["kind"],
        state=each.state,
    )


def _folder_status(folder: Folder, status: IndexStatus) -> protocol.FolderStatus:
    return protocol.FolderStatus(
        name=folder.key,
        uri=folder.uri,
        state=status.state,
        generation=status.generation,
        files=status.n_files,
        chunks=status.n_chunks,
        symbols=status.n_symbols,
        vectors=status.n_vectors,
        done=status.done,
        total=status.total,
        skipped=dict(status.skipped),
        embedder=status.embedder,
        problems=status.problems,
    )


def message(message: types.Message) -> protocol.PromptMessage:
    return protocol.PromptMessage(
        role=message.role,
        content=message.content,
        tool_calls=tuple(protocol.ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls),
        tool_call_id=message.tool_call_id,
        name=message.name,
        id=message.id,
        summary_of=message.summary_of,
        origins=message.origins,
        images=tuple(protocol.Image(image.reference, Uint(image.tokens)) for image in message.images),
    )


def sealed_message(message: types.Message) -> protocol.HistoryMessage:
    """A sealed message as the client sent it."""
    seal = message.sealed
    return protocol.HistoryMessage(
        role=message.role,
        tool_call_id=message.tool_call_id,
        pinned=message.pinned,
        origins=message.origins,
        id=message.id,
        summary_of=message.summary_of,
        images=tuple(protocol.Image(image.reference, Uint(image.tokens)) for image in message.images),
        sealed=_seal(message, seal) if seal else None,
    )


def _seal(message: types.Message, seal: types.Sealed) -> sealed_messages.Sealed:
    envelope = seal.envelope
    return sealed_messages.Sealed(
        ref=seal.ref,
        session=seal.session,
        sequence=Uint(seal.sequence),
        tokens=Uint(seal.tokens),
        commitment=seal.commitment,
        envelope=sealed_messages.Envelope(
            version=Uint(envelope.version),
            algorithm=envelope.algorithm,
            key_id=envelope.key_id,
            nonce=envelope.nonce,
            ciphertext=envelope.ciphertext,
        ),
        tool_call_ids=tuple(call.id for call in message.tool_calls),
        created_at=seal.created_at,
        model=seal.model,
    )


def block(block: types.Block, root: str | None) -> protocol.Block:
    spans = block.spans
    return protocol.Block(
        title=block.title,
        folder=block.folder,
        path=block.path,
        uri=_address(root, block.path) if root is not None and block.path else None,
        range=lines((spans[0][0], spans[-1][1])) if spans else None,
        ranges=tuple(lines(span) for span in spans),
        kind=block.kind,
        detail=block.detail,
        language=block.language,
        tokens=block.tokens,
        score=block.score,
        items=block.items,
        text=block.text,
    )


@lru_cache(maxsize=4_096)  # files that come up in one answer come up in the next
def _address(root: str, path: str) -> str:
    return uris.from_path(Path(root, path))


def route(route: types.Route) -> protocol.Route:
    return protocol.Route(
        model=route.model.name,
        provider=route.model.provider,
        family=route.model.family,
        local=route.model.local,
        assumed=route.model.assumed,
        window=route.window,
        window_source=route.window_source,
        reply_reserve=route.reply_reserve,
        max_output=route.max_output,
        override_used=route.override_used,
        matched_rule=route.chosen_by,
        fallback_used=route.fallback_used,
        task_type=route.task_type,
        effort=route.effort,
        skipped=tuple(protocol.Skip(each.model, each.code, each.reason) for each in route.skipped),
        degraded=route.degraded,
        cost=None if route.cost is None else protocol.Cost(route.cost.low, route.cost.high, route.cost.limit),
        approvals=route.approvals,
    )


def manifest(manifest: types.Manifest) -> protocol.Manifest:
    tokens = manifest.tokens
    return protocol.Manifest(
        items=tuple(manifest_item(each) for each in manifest.items),
        timings=tuple(
            protocol.Timing(each.name, each.status, each.milliseconds, each.deadline, each.n_candidates)
            for each in manifest.timings
        ),
        tokens=protocol.TokenUse(
            window=tokens.window,
            window_source=tokens.window_source,
            reply_reserve=tokens.reply_reserve,
            system=tokens.system,
            tools=tokens.tools,
            history=tokens.history,
            question=tokens.question,
            context=tokens.context,
            context_budget=tokens.context_budget,
            total=tokens.total,
            counted=tokens.counted,
            counter=tokens.counter,
        ),
        problems=problems(manifest.problems),
        classification=dict(manifest.classification),
        index=dict(manifest.index),
        hash=manifest.hash,
        prefix=_prefix(manifest.prefix) if manifest.prefix else None,
        selection=_selection(manifest.selection) if manifest.selection else None,
    )


def _prefix(prefix: types.Prefix) -> protocol.Prefix:
    return protocol.Prefix(prefix.known, prefix.shared, prefix.total, round(prefix.share, 4))


def manifest_item(item: types.ManifestItem) -> protocol.ManifestItem:
    return protocol.ManifestItem(
        id=item.id,
        source=item.source,
        kind=item.kind,
        title=item.title,
        folder=item.folder,
        path=item.path,
        range=lines(item.lines) if item.lines else None,
        required=item.required,
        restricted=item.restricted,
        outcome=item.outcome,
        detail=item.detail,
        reasons=item.reasons,
        tokens_before=item.tokens_before,
        tokens_after=item.tokens_after,
        score=item.score,
        parts=tuple(protocol.Part(name, value) for name, value in item.parts),
        why=item.why,
        content_hash=item.content_hash,
        flags=item.flags,
        note=item.note,
        verdict=_verdict(item.verdict) if item.verdict else None,
    )


def _verdict(verdict: types.Verdict) -> supplied_messages.Verdict:
    eligibility = verdict.eligibility
    return supplied_messages.Verdict(
        place=verdict.place,
        priority=verdict.priority,
        entry=verdict.entry,
        selected=verdict.selected,
        eligibility=_facts(eligibility) if eligibility else None,
    )


def _facts(eligibility: types.Eligibility) -> supplied_messages.EligibilityFacts:
    return supplied_messages.EligibilityFacts(
        source_authorization=eligibility.authorization,
        tenant_ids=eligibility.tenants,
        purposes=eligibility.purposes,
        classification=eligibility.classification,
        fresh_until=eligibility.fresh_until,
        prompt_injection_treatment=eligibility.treatment,
        precedence=eligibility.precedence,
        evidence=tuple(each.id for each in eligibility.evidence),
    )


def _selection(selection: types.Selection) -> supplied_messages.Selection:
    return supplied_messages.Selection(selection.identity, selection.n_entries, selection.n_bytes, selection.tokens)


def problems(found: Sequence[types.Problem]) -> tuple[protocol.Problem, ...]:
    return tuple(protocol.Problem(each.stage, each.code, each.message, each.remedy) for each in found)
