"""Haversack's own messages, as they look on the wire. `docs/protocol.md` describes the same names; a test compares the two.

Attributes are written in snake case here and travel in camel case. Reading is strict (a number is never taken for text) and
names the field that does not fit; fields that nobody knows are ignored and listed by `unknown_fields`.
"""

from __future__ import annotations

import math
from collections import abc
from collections.abc import Iterator, Mapping
from typing import Any, NewType, TypeVar, cast, get_args, get_type_hints

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

Uint = NewType("Uint", int)
"""LSP `uinteger`: 0 to 2^31 - 1."""

Share = NewType("Share", float)
"""A number from 0 to 1."""

T = TypeVar("T")

# LSP 3.17, "Base Types": the range of `uinteger`.
MAX_UINT = 2**31 - 1


# --- parameters -------------------------------------------------------------------------------------------------


@attrs.frozen
class Position:
    line: Uint
    character: Uint


@attrs.frozen
class Range:
    start: Position
    end: Position


@attrs.frozen
class ActiveDocument:
    uri: str
    position: Position | None = None
    selection: Range | None = None
    visible_ranges: tuple[Range, ...] = ()


@attrs.frozen
class Mention:
    value: str
    kind: str | None = None
    range: Range | None = None


@attrs.frozen
class ToolCall:
    id: str
    name: str
    arguments: str


@attrs.frozen
class HistoryMessage:
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    pinned: bool = False
    origins: tuple[str, ...] = ()


@attrs.frozen
class Supplied:
    id: str
    title: str
    text: str
    path: str | None = None
    range: Range | None = None
    required: bool = False
    score: Share = Share(0.5)


@attrs.frozen
class ContextParams:
    text: str
    workspace_folder: str | None = None
    active_document: ActiveDocument | None = None
    mentions: tuple[Mention, ...] = ()
    history: tuple[HistoryMessage, ...] = ()
    model: str | None = None
    budget_tokens: Uint | None = None
    supplied: tuple[Supplied, ...] = ()
    recipe: str = "chat"
    tools_tokens: Uint = Uint(0)


@attrs.frozen
class WorkspaceFolder:
    uri: str
    name: str = ""


@attrs.frozen
class InitializeParams:
    """What of the standard's parameters is used. Capabilities stay plain: an unknown one must never stop a start."""

    capabilities: Mapping[str, Any]
    process_id: int | None = None
    root_uri: str | None = None
    root_path: str | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None
    initialization_options: Any = None


@attrs.frozen
class IndexParams:
    workspace_folder: str | None = None


@attrs.frozen
class Diagnostic:
    range: Range
    message: str
    severity: Uint = Uint(1)
    source: str | None = None
    code: int | str | None = None


@attrs.frozen
class DiagnosticsParams:
    uri: str
    diagnostics: tuple[Diagnostic, ...]


# --- results ----------------------------------------------------------------------------------------------------


@attrs.frozen
class Problem:
    stage: str
    code: str
    message: str
    remedy: str


@attrs.frozen
class PromptMessage:
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str
    name: str


@attrs.frozen
class Prompt:
    messages: tuple[PromptMessage, ...]
    tokens: int
    stable_chars: int


@attrs.frozen
class Block:
    title: str
    folder: str
    path: str | None
    uri: str | None
    range: Range | None
    ranges: tuple[Range, ...]
    kind: str
    detail: str
    language: str
    tokens: int
    score: float
    items: tuple[str, ...]
    text: str


@attrs.frozen
class Route:
    model: str
    provider: str
    family: str
    local: bool
    assumed: bool
    window: int
    window_source: str
    reply_reserve: int
    override_used: bool
    matched_rule: str
    fallback_used: bool


@attrs.frozen
class Part:
    name: str
    value: float


@attrs.frozen
class ManifestItem:
    id: str
    source: str
    kind: str
    title: str
    folder: str
    path: str | None
    range: Range | None
    required: bool
    restricted: bool
    outcome: str
    detail: str | None
    reasons: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    score: float
    parts: tuple[Part, ...]
    why: str
    content_hash: str
    flags: tuple[str, ...]
    note: str


@attrs.frozen
class Timing:
    name: str
    status: str
    milliseconds: float
    candidates: int


@attrs.frozen
class TokenUse:
    window: int
    window_source: str
    reply_reserve: int
    system: int
    tools: int
    history: int
    question: int
    context: int
    context_budget: int
    total: int
    counted: str
    counter: str


@attrs.frozen
class Manifest:
    items: tuple[ManifestItem, ...]
    timings: tuple[Timing, ...]
    tokens: TokenUse
    problems: tuple[Problem, ...]
    classification: Any
    index: Any
    hash: str


@attrs.frozen
class HistoryReport:
    tier: str
    tokens_before: int
    tokens_after: int
    warning: bool
    note: str


@attrs.frozen
class ContextResult:
    status: str
    prompt: Prompt
    blocks: tuple[Block, ...]
    route: Route
    manifest: Manifest
    history: HistoryReport
    version_hash: str
    problems: tuple[Problem, ...]


@attrs.frozen
class FolderStatus:
    name: str
    uri: str
    state: str
    generation: int
    files: int
    chunks: int
    symbols: int
    vectors: int
    done: int
    total: int
    skipped: Any
    embedder: str
    problems: tuple[str, ...]


@attrs.frozen
class IndexStatusResult:
    state: str
    generation: int
    files: int
    chunks: int
    symbols: int
    vectors: int
    done: int
    total: int
    skipped: Any
    folders: tuple[FolderStatus, ...]


@attrs.frozen
class ErrorData:
    code: str
    remedy: str
    details: Any


# --- the methods ------------------------------------------------------------------------------------------------

CONTEXT = "haversack/context"
PREVIEW = "haversack/preview"
INDEX_STATUS = "haversack/index/status"
INDEX_REBUILD = "haversack/index/rebuild"
DIAGNOSTICS = "haversack/diagnostics"

REQUESTS: Mapping[str, tuple[type, type]] = {
    CONTEXT: (ContextParams, ContextResult),
    PREVIEW: (ContextParams, ContextResult),
    INDEX_STATUS: (IndexParams, IndexStatusResult),
    INDEX_REBUILD: (IndexParams, IndexStatusResult),
}
"""Request method to the classes of its parameters and its result."""

NOTIFICATIONS: Mapping[str, type] = {DIAGNOSTICS: DiagnosticsParams}


def params_class(method: str) -> type | None:
    """The class here that the parameters of `method` are read as; None for what lsprotocol reads."""
    if method == "initialize":
        return InitializeParams
    return REQUESTS[method][0] if method in REQUESTS else NOTIFICATIONS.get(method)


# --- reading and writing ----------------------------------------------------------------------------------------


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def read(raw: object, cls: type[T]) -> T:
    """`raw` JSON as `cls`; raises what `explain` can put into words."""
    return _converter.structure(raw, cls)


def write(value: object) -> Any:
    """An attrs value of this module as plain JSON data."""
    return _converter.unstructure(value)


def explain(error: BaseException, path: str = "params") -> str:
    """The first field that did not fit, as `params.activeDocument.uri: expected a string`."""
    if isinstance(error, cattrs.ClassValidationError):
        inner, note = error.group_exceptions()[0][0]
        return explain(inner, f"{path}.{camel(note.name)}") if error.group_exceptions()[0] else path
    if isinstance(error, cattrs.IterableValidationError):
        inner, note = error.group_exceptions()[0][0]
        return explain(inner, f"{path}[{note.index}]")
    if isinstance(error, KeyError):
        return f"{path}: missing"
    if isinstance(error, _Unfit):
        return f"{path}: {error}"
    return f"{path}: does not fit"


def unknown_fields(raw: object, cls: object, path: str = "params") -> Iterator[str]:
    """Paths of the fields in `raw` that `cls` does not have."""
    for member in (cls, *get_args(cls)):
        if isinstance(raw, dict) and isinstance(member, type) and attrs.has(member):
            hints = get_type_hints(member)
            known = {camel(field.name): hints[field.name] for field in attrs.fields(member)}
            for name, value in cast("dict[str, object]", raw).items():
                if name not in known:
                    yield f"{path}.{name}"
                else:
                    yield from unknown_fields(value, known[name], f"{path}.{name}")
            return
    if isinstance(raw, list) and get_args(cls):
        for place, value in enumerate(cast("list[object]", raw)):
            yield from unknown_fields(value, get_args(cls)[0], f"{path}[{place}]")


class _Unfit(ValueError):
    """A value of the wrong kind, with words for it that name no content."""


def _text(raw: object, _: object) -> str:
    if not isinstance(raw, str):
        raise _Unfit("expected a string")
    return raw


def _object(raw: object, _: object) -> object:
    if not isinstance(raw, dict):
        raise _Unfit("expected an object")
    return cast("dict[str, object]", raw)


def _truth(raw: object, _: object) -> bool:
    if not isinstance(raw, bool):
        raise _Unfit("expected true or false")
    return raw


def _integer(raw: object, _: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise _Unfit("expected an integer")
    return raw


def _uint(raw: object, _: object) -> Uint:
    if not isinstance(raw, int) or isinstance(raw, bool) or not 0 <= raw <= MAX_UINT:
        raise _Unfit(f"expected an integer from 0 to {MAX_UINT}")
    return Uint(raw)


def _share(raw: object, _: object) -> Share:
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not math.isfinite(raw) or not 0 <= raw <= 1:
        raise _Unfit("expected a number from 0 to 1")
    return Share(float(raw))


def _text_or_integer(raw: object, _: object) -> int | str | None:
    if raw is None or isinstance(raw, str) or (isinstance(raw, int) and not isinstance(raw, bool)):
        return raw
    raise _Unfit("expected a string or an integer")


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter()

    def names(cls: type) -> dict[str, Any]:
        return {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}

    def structure(cls: type) -> Any:
        fields = make_dict_structure_fn(cls, converter, **names(cls))

        def from_object(raw: object, _: object) -> object:
            if not isinstance(raw, dict):
                raise _Unfit("expected an object")
            return fields(cast("dict[str, Any]", raw), cls)

        return from_object

    def sequence(kind: Any) -> Any:
        item = get_args(kind)[0]
        each = list[item]

        def from_array(raw: object, _: object) -> object:
            if not isinstance(raw, list):
                raise _Unfit("expected an array")
            return tuple(inner(cast("list[object]", raw), each))

        inner = converter.get_structure_hook(each)
        return from_array

    converter.register_structure_hook_factory(attrs.has, structure)
    converter.register_unstructure_hook_factory(
        attrs.has, lambda cls: make_dict_unstructure_fn(cls, converter, **names(cls))
    )
    converter.register_structure_hook_factory(lambda kind: getattr(kind, "__origin__", None) is tuple, sequence)
    converter.register_structure_hook_func(lambda kind: getattr(kind, "__origin__", None) is abc.Mapping, _object)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(bool, _truth)
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook_func(lambda kind: kind is Uint, _uint)
    converter.register_structure_hook_func(lambda kind: kind is Share, _share)
    converter.register_structure_hook_func(lambda kind: kind == int | str | None, _text_or_integer)
    return converter


_converter = _make_converter()
