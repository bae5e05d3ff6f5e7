"""The client's words in our nouns: columns become code points, ranges become whole lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from lsprotocol import types as lsp

from haversack import sealed, types, uris
from haversack.documents import Documents, Edit, Encoding
from haversack.lsp import protocol, provider_history, sealed_messages, supplied
from haversack.policy.demands import FAILURES
from haversack.policy.providers import provider_name
from haversack.types import InvalidRequest

# Characters of an unknown field's name that the reply repeats: what the client sent need not come back whole.
MAX_SHOWN_NAME = 100

# Fields without a meaning that a reply names; whoever sends more has seen from these what is wrong.
MOST_UNKNOWN = 20

# What one request may bring. A person names a handful and a long day's session has some thousand messages; beyond these
# a client is broken, and reading on would cost everybody else seconds.
MOST_MENTIONS = 1_000
MOST_MESSAGES = 20_000
MOST_SUPPLIED = 5_000
# No path and no name is longer on any system; what is comes back in rows and problems.
LONGEST_NAME = 4_096

# Models of one route that have failed, providers that somebody holds keys for, capabilities there are.
MOST_OF_A_ROUTE = 100

E = TypeVar("E", types.MentionKind, types.Role, types.Intent, types.Effort, types.Capability, types.Purpose)


def request(
    params: protocol.ContextParams, unknown: Sequence[str], documents: Documents, find_folder: Callable[[str], str]
) -> types.Request:
    """Raises `InvalidRequest` for a value that is none of its set; a supplied item that does not fit is a problem."""
    _limit(params)
    items, malformed = supplied.items(params.supplied, _whole_lines)
    unknown = (*unknown, *supplied.unknown_fields(params.supplied, MOST_UNKNOWN - len(unknown)))
    past = history(params.history, params.provider_history)
    return types.Request(
        text=params.text,
        folder=find_folder(params.workspace_folder) if params.workspace_folder else "",
        active=_active(params.active_document, documents) if params.active_document else None,
        mentions=tuple(_mention(each, f"params.mentions[{n}]") for n, each in enumerate(params.mentions)),
        history=past,
        model=params.model,
        budget_tokens=params.budget_tokens,
        supplied=items,
        eligibility=supplied.scope(params.eligibility) if params.eligibility else None,
        recipe=params.recipe,
        tools_tokens=params.tools_tokens,
        policy=params.policy,
        tenant=params.tenant,
        conversation=params.conversation,
        intent=_member(types.Intent, params.intent, "params.intent") if params.intent is not None else None,
        effort=_member(types.Effort, params.effort, "params.effort") if params.effort is not None else None,
        needs=tuple(_member(types.Capability, each, f"params.needs[{n}]") for n, each in enumerate(params.needs)),
        local_only=params.local_only,
        providers=_providers(params.providers),
        failed=tuple(_failed(each, f"params.failed[{n}]") for n, each in enumerate(params.failed)),
        exclude=params.exclude,
        problems=(*unknown_fields(unknown), *malformed),
    )


def history(
    own: Sequence[protocol.HistoryMessage], of_provider: protocol.ProviderMessages | None
) -> tuple[types.Message, ...]:
    """The earlier messages, in one form or the other. Raises `InvalidRequest` for both, or for more than are read."""
    if own and of_provider is not None:
        raise InvalidRequest("params.providerHistory: stands beside params.history.", "Send the conversation once.")
    for name, sent in (("history", own), ("providerHistory.messages", of_provider.messages if of_provider else ())):
        if len(sent) > MOST_MESSAGES:
            raise InvalidRequest(
                f"params.{name}: {len(sent):,} items; a request may bring {MOST_MESSAGES:,}.",
                "Bring the ones that matter most.",
            )
    found = provider_history.read(of_provider) or tuple(
        _message(each, f"params.history[{n}]") for n, each in enumerate(own)
    )
    sealed.check_places(found)
    return found


def selection(
    params: protocol.SelectParams, unknown: Sequence[str], find_folder: Callable[[str], str]
) -> types.Request:
    """Raises `InvalidRequest` for a purpose that is none, and for names longer than any name."""
    for place, value in {"document": params.document, "workspaceFolder": params.workspace_folder or ""}.items():
        if len(value) > LONGEST_NAME:
            raise InvalidRequest(f"params.{place}: longer than {LONGEST_NAME:,} characters.", "Give a path or a URI.")
    focus = params.focus
    if focus is not None and len(focus.section_ids) > MOST_MENTIONS:
        raise InvalidRequest(f"params.focus.sectionIds: more than {MOST_MENTIONS:,}.", "Point at a few sections.")
    return types.Request(
        text=params.text,
        folder=find_folder(params.workspace_folder) if params.workspace_folder else "",
        model=params.model,
        budget_tokens=params.budget_tokens,
        tenant=params.tenant,
        document=types.DocumentSelection(
            params.document,
            _focus(focus) if focus is not None else None,
            _member(types.Purpose, params.purpose, "params.purpose"),
        ),
        problems=tuple(_unknown_field(name) for name in unknown),
    )


def _focus(focus: protocol.DocumentFocus) -> types.DocumentFocus | None:
    """As the client wrote it, since it is echoed: sections are whole lines, which are the same in every encoding."""
    span = focus.range
    start, end = (_position(span.start), _position(span.end)) if span is not None else (None, None)
    place = types.Range(start, end) if start is not None and end is not None else None
    pointed = types.DocumentFocus(focus.section_ids, place, focus.quote)
    return None if pointed == types.DocumentFocus() else pointed


def _limit(params: protocol.ContextParams) -> None:
    for name, values, most in (
        ("mentions", params.mentions, MOST_MENTIONS),
        ("supplied", params.supplied, MOST_SUPPLIED),
        ("needs", params.needs, MOST_OF_A_ROUTE),
        ("providers", params.providers or (), MOST_OF_A_ROUTE),
        ("failed", params.failed, MOST_OF_A_ROUTE),
        ("exclude", params.exclude, MOST_MENTIONS),
    ):
        if len(values) > most:
            raise InvalidRequest(
                f"params.{name}: {len(values):,} items; a request may bring {most:,}.",
                "Bring the ones that matter most.",
            )
    names = {f"params.mentions[{n}].value": each.value for n, each in enumerate(params.mentions)}
    names["params.workspaceFolder"] = params.workspace_folder or ""
    names |= {f"params.failed[{n}].model": each.model for n, each in enumerate(params.failed)}
    for place, value in names.items():
        if len(value) > LONGEST_NAME:
            raise InvalidRequest(
                f"{place}: {len(value):,} characters; a name has at most {LONGEST_NAME:,}.", "Give a path or a name."
            )


def diagnostics(params: protocol.DiagnosticsParams, documents: Documents) -> tuple[types.Diagnostic, ...]:
    place = documents.places(params.uri)
    return tuple(
        types.Diagnostic(
            uri=params.uri,
            start=place(_position(each.range.start)),
            end=place(_position(each.range.end)),
            severity=each.severity,
            message=each.message,
            source=each.source or "",
            code="" if each.code is None else str(each.code),
        )
        for each in params.diagnostics
    )


def edit(change: lsp.TextDocumentContentChangeEvent) -> Edit:
    """Columns stay in the client's encoding: the document that takes the edit knows it."""
    if isinstance(change, lsp.TextDocumentContentChangePartial):
        start, end = change.range.start, change.range.end
        span = types.Range(types.Position(start.line, start.character), types.Position(end.line, end.character))
        return Edit(span, change.text)
    return Edit(None, change.text)


def encoding(capabilities: Mapping[str, Any]) -> Encoding:
    """The first of the client's position encodings that we know; UTF-16 when it names none (LSP 3.17)."""
    offered = offer(capabilities, "general", "positionEncodings")
    for name in cast("list[object]", offered) if isinstance(offered, list) else ():
        if name in tuple(Encoding):
            return Encoding(cast("str", name))
    return Encoding.UTF_16


def offer(capabilities: Any, *path: str) -> Any:
    """The value at `path` of the client's capabilities, None where any part is missing."""
    value: Any = capabilities
    for name in path:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(name)
    return value


def folders(params: protocol.InitializeParams) -> tuple[tuple[str, str], ...]:
    """URI and name of the workspace's folders, from the newest of the three ways that the client used."""
    if params.workspace_folders is not None:
        return tuple((folder.uri, folder.name) for folder in params.workspace_folders)
    if params.root_uri is not None:
        return ((params.root_uri, ""),)
    return ((uris.from_path(params.root_path), ""),) if params.root_path else ()


def options(given: object) -> tuple[bool, dict[str, Any]]:
    """`trusted` and `settings` of the initialization options. A workspace is trusted unless the client denies it."""
    if not isinstance(given, dict):
        return True, {}
    fields = cast("dict[str, Any]", given)
    settings = fields.get("settings")
    return fields.get("trusted") is not False, cast("dict[str, Any]", settings) if isinstance(settings, dict) else {}


def _active(active: protocol.ActiveDocument, documents: Documents) -> types.ActiveDocument:
    place = documents.places(active.uri)
    return types.ActiveDocument(
        uri=active.uri,
        position=place(_position(active.position)) if active.position else None,
        selection=_range(active.selection, place) if active.selection else None,
        visible=tuple(_range(each, place) for each in active.visible_ranges),
    )


def _position(position: protocol.Position) -> types.Position:
    return types.Position(position.line, position.character)


def _range(span: protocol.Range, place: Callable[[types.Position], types.Position]) -> types.Range:
    start, end = place(_position(span.start)), place(_position(span.end))
    if (end.line, end.character) < (start.line, start.character):
        start, end = end, start
    return types.Range(start, end)


def _mention(mention: protocol.Mention, path: str) -> types.Mention:
    kind = None if mention.kind is None else _member(types.MentionKind, mention.kind, f"{path}.kind")
    return types.Mention(mention.value, kind, _whole_lines(mention.range))


def unknown_fields(names: Sequence[str]) -> tuple[types.Problem, ...]:
    return tuple(_unknown_field(name) for name in names)


def records(params: protocol.ContinueParams) -> tuple[types.OpenedRecord, ...]:
    return tuple(
        types.OpenedRecord(each.ref, each.content, each.salt, _calls(each.tool_calls), each.name)
        for each in params.records
    )


def _message(message: protocol.HistoryMessage, path: str) -> types.Message:
    role = _member(types.Role, message.role, f"{path}.role")
    if message.sealed is not None:
        return _sealed(message, message.sealed, role, f"{path}.sealed")
    if message.content is None:
        raise InvalidRequest(f"{path}.content: missing.")
    return types.Message(
        role=role,
        content=message.content,
        tool_calls=_calls(message.tool_calls),
        tool_call_id=message.tool_call_id,
        name=message.name,
        pinned=message.pinned,
        origins=message.origins,
        id=message.id,
        summary_of=message.summary_of,
        images=_images(message.images),
    )


def _providers(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    return tuple(provider_name(each, f"params.providers[{n}]") for n, each in enumerate(names))


def _failed(failed: protocol.FailedModel, path: str) -> types.FailedModel:
    if failed.reason not in FAILURES:
        raise InvalidRequest(f"{path}.reason: expected one of {', '.join(FAILURES)}.")
    return types.FailedModel(failed.model, failed.reason)


def _sealed(
    message: protocol.HistoryMessage, seal: sealed_messages.Sealed, role: types.Role, path: str
) -> types.Message:
    if message.content is not None or message.tool_calls or message.name:
        raise sealed.malformed(path, "stands beside content, toolCalls or name, which it seals")
    envelope = seal.envelope
    made = types.Message(
        role=role,
        content="",
        tool_calls=sealed.placeholder_calls(seal.tool_call_ids),
        tool_call_id=message.tool_call_id,
        pinned=message.pinned,
        origins=message.origins,
        id=message.id,
        summary_of=message.summary_of,
        images=_images(message.images),
        sealed=types.Sealed(
            ref=seal.ref,
            session=seal.session,
            sequence=seal.sequence,
            tokens=seal.tokens,
            commitment=seal.commitment,
            envelope=types.Envelope(
                envelope.version, envelope.algorithm, envelope.key_id, envelope.nonce, envelope.ciphertext
            ),
            created_at=seal.created_at,
            model=seal.model,
        ),
    )
    sealed.check(made, path)
    return made


def _images(images: Sequence[protocol.Image]) -> tuple[types.Image, ...]:
    return tuple(types.Image(image.reference, image.tokens) for image in images)


def _calls(calls: Sequence[protocol.ToolCall]) -> tuple[types.ToolCall, ...]:
    return tuple(types.ToolCall(call.id, call.name, call.arguments) for call in calls)


def _whole_lines(span: protocol.Range | None) -> tuple[int, int] | None:
    """The lines a range touches, end exclusive. A range that ends before a line's first character leaves it out."""
    if span is None:
        return None
    first, last = sorted(((span.start.line, span.start.character), (span.end.line, span.end.character)))
    end = last[0] if last[1] == 0 and last[0] > first[0] else last[0] + 1
    return first[0], end


def _member(kind: type[E], value: str, path: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise InvalidRequest(f"{path}: expected one of {', '.join(kind)}.") from None


def _unknown_field(name: str) -> types.Problem:
    shown = name if len(name) <= MAX_SHOWN_NAME else f"{name[:MAX_SHOWN_NAME]}…"
    return types.Problem(
        "request", "unknown_field", f"{shown} is not a field of this request.", "Check its spelling, or leave it out."
    )
