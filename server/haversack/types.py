"""The nouns of the line, in the order they are made. All frozen; sequences are tuples; closed sets are enums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from haversack_index.types import Parts

# --- errors: HaversackError is shown to the user; anything else that escapes a stage is a bug -------------------


class HaversackError(Exception):
    """A failure the user can act on: `code` is stable, `message` says what, `remedy` says what to do.

    Raised anywhere on the line, turned into an LSP error with `code`, `remedy` and `details` in `data`.
    """

    def __init__(self, code: str, message: str, remedy: str = "", **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.details: dict[str, object] = dict(details)


class InvalidRequest(HaversackError):
    """The request's own fields are wrong (JSON-RPC -32602)."""

    def __init__(self, message: str, remedy: str = "", **details: object) -> None:
        super().__init__("invalid_params", message, remedy, **details)


class OverBudget(HaversackError):
    """Required items alone do not fit; carries what was required, in tokens."""

    def __init__(self, needed: int, budget: int, items: tuple[tuple[str, int], ...]) -> None:
        super().__init__(
            "context_window_exceeded",
            f"What must be in the prompt needs {needed:,} tokens, {needed - budget:,} more than fit ({budget:,}).",
            "Mention fewer files or a line range, raise the budget, or choose a model with a larger window.",
            needed=needed,
            budget=budget,
            items=[{"item": name, "tokens": tokens} for name, tokens in items],
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """Trouble as data: the reply goes on without `what`. `stage` names the stage or gatherer."""

    stage: str
    code: str
    message: str
    remedy: str = ""


# --- the request ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Line and character from 0; characters are Unicode code points (the LSP edge converts)."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class ActiveDocument:
    uri: str
    position: Position | None = None
    selection: Range | None = None
    visible: tuple[Range, ...] = ()


class MentionKind(StrEnum):
    PATH = "path"
    FOLDER = "folder"
    SYMBOL = "symbol"
    DIFF = "diff"
    PROBLEMS = "problems"


@dataclass(frozen=True, slots=True)
class Mention:
    """What the user named. `value` is as written; `lines` are whole lines, from 0, end exclusive.

    `kind` is None when only the text decides (`@name` may be a file, a folder or a symbol).
    """

    value: str
    kind: MentionKind | None = None
    lines: tuple[int, int] | None = None
    from_text: bool = False


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON text as the model wrote it


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message: where it is, and what it costs. Its bytes are the client's business."""

    reference: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a client encrypted, and what it takes besides the key to open it. Bytes in base64."""

    version: int
    algorithm: str
    key_id: str
    nonce: str
    ciphertext: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """Stands for the encrypted part of a message: its text, its tool's name, and names and arguments of its calls.

    Everything here and in the message beside it is in the clear, and bound to the encrypted part (`haversack.sealed`).
    """

    ref: str  # `message:<id>`
    session: str
    sequence: int  # grows along the session
    tokens: int  # what the encrypted part costs, as whoever sealed it says
    commitment: str  # proves without a key that an opened text is the sealed one
    envelope: Envelope
    created_at: str = ""
    model: str = ""  # provider/model that wrote it


@dataclass(frozen=True, slots=True)
class OpenedRecord:
    """The encrypted part of a sealed message, as the client opened it. `salt` was sealed beside it."""

    ref: str
    content: str
    salt: str
    tool_calls: tuple[ToolCall, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of history or prompt. `tool_call_id` pairs a tool result with its call.

    `id` is the client's name for it. `summary_of` names the messages that this one stands for.

    While `sealed` is there, `content` and `name` are empty, and of its calls only the ids are known.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    pinned: bool = False
    origins: tuple[str, ...] = ()  # paths whose text the message quotes, when the client says so
    id: str = ""
    summary_of: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    sealed: Sealed | None = None


# --- supplied candidates: what another tool brings, with what it says about it --------------------------------------


class Priority(StrEnum):
    REQUIRED = "required"
    PREFERRED = "preferred"
    OPTIONAL = "optional"


class Classification(StrEnum):
    """How far a text may travel, least guarded first; `restricted` text never goes to a remote model."""

    PUBLIC = "public"
    INTERNAL = "internal"
    RESTRICTED = "restricted"


class Authorization(StrEnum):
    """Whether the source of a text allows this use of it."""

    AUTHORIZED = "authorized"
    DENIED = "denied"


class Treatment(StrEnum):
    """What to do about text that may give orders to a model; `redact` serves a replacement made by the caller."""

    ALLOW = "allow"
    REDACT = "redact"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Bytes that are kept elsewhere, by name, size and SHA-256; never a path, an address or a key."""

    id: str
    media_type: str
    n_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class EvidenceRef:
    """What backs a statement: an entry of the caller's own records."""

    id: str
    kind: str
    content: ResourceRef
    schema: str = ""


@dataclass(frozen=True, slots=True)
class TextContent:
    text: str


@dataclass(frozen=True, slots=True)
class JsonContent:
    text: str  # canonical JSON
    schema: str = ""


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """Bytes that were sent along: checked against size and digest, then forgotten."""

    media_type: str
    n_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class ReferenceContent:
    resource: ResourceRef
    alt_text: str = ""


Content = TextContent | JsonContent | BinaryContent | ReferenceContent


@dataclass(frozen=True, slots=True)
class SuppliedBy:
    source: str  # "application", "system" or "user"


@dataclass(frozen=True, slots=True)
class DerivedFrom:
    operation: str
    sources: tuple[str, ...]  # SHA-256 of each, one at least, none twice


@dataclass(frozen=True, slots=True)
class RetrievedFrom:
    source: ResourceRef
    evidence: EvidenceRef | None = None


Provenance = SuppliedBy | DerivedFrom | RetrievedFrom


@dataclass(frozen=True, slots=True)
class Replacement:
    """What may be served in place of a text that must be redacted. None: as in the item it replaces."""

    content: Content
    priority: Priority | None = None
    provenance: Provenance | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What its owner says about the use of a text. Instants are UTC, `2026-08-01T00:00:00.000Z`, and sort as text."""

    authorization: Authorization
    tenants: tuple[str, ...]  # empty: any
    purposes: tuple[str, ...]
    classification: Classification
    fresh_until: str
    treatment: Treatment
    precedence: int  # among items of one priority, lower first
    evidence: tuple[EvidenceRef, ...]
    redacted: Replacement | None = None


@dataclass(frozen=True, slots=True)
class SuppliedBudget:
    """Over all supplied items together."""

    max_entries: int
    max_bytes: int
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EligibilityScope:
    """What eligibility is judged against. `scope`: kind and ids of the invocation, run or step, as pairs."""

    purpose: str
    as_of: str
    max_classification: Classification
    budget: SuppliedBudget
    scope: tuple[tuple[str, str], ...]
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What qualification made of one supplied item; holds no text of it.

    `entry` identifies the item, `selected` what may be served of it: the same, or its replacement; "" when nothing may.
    """

    place: int  # in the request, from 0
    priority: Priority
    entry: str = ""
    selected: str = ""
    reasons: tuple[Reason, ...] = ()
    restricted: bool = False
    note: str = ""
    eligibility: Eligibility | None = None  # without a replacement

    @property
    def redacted(self) -> bool:
        return self.selected not in ("", self.entry)


@dataclass(frozen=True, slots=True)
class Selection:
    """What the supplied items that qualified use of their budget, and the identity of the choice."""

    identity: str
    n_entries: int
    n_bytes: int
    tokens: int | None  # None: an item's cost is not known


@dataclass(frozen=True, slots=True)
class Supplied:
    """A candidate another tool brings.

    `content` stands in place of `text` until the item is qualified; from then on `text` is what may be served, and
    `verdict` says the rest. `required` is short for the priority of that name.
    """

    id: str
    title: str
    text: str
    path: str | None = None
    lines: tuple[int, int] | None = None
    required: bool = False
    score: float = 0.5  # 0..1, relevance the tool claims
    content: Content | None = None
    priority: Priority = Priority.OPTIONAL
    tokens: int | None = None  # what it costs, as the tool says
    provenance: Provenance | None = None
    eligibility: Eligibility | None = None
    fault: str = ""  # not empty: could not be read, and where; nothing else of it is kept
    verdict: Verdict | None = None


# --- the request itself -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One question to answer with context. `folder` is a key of `Snapshot.folders`, or "" for all of them."""

    text: str
    folder: str = ""
    active: ActiveDocument | None = None
    mentions: tuple[Mention, ...] = ()
    history: tuple[Message, ...] = ()
    model: str | None = None  # explicit `provider/model`
    budget_tokens: int | None = None  # cap on gathered context
    supplied: tuple[Supplied, ...] = ()
    eligibility: EligibilityScope | None = None
    recipe: str = "chat"
    tools_tokens: int = 0  # what the client's tool schemas cost, as it says
    conversation: str = ""  # the client's name for it
    intent: Intent | None = None  # said by the client (a slash command); judged from the text without it
    effort: Effort | None = None  # as above, else the matched rule's
    needs: tuple[Capability, ...] = ()  # what the turn itself needs of a model: tools, images …
    local_only: bool = False  # the caller wants nothing to leave this machine
    providers: tuple[str, ...] | None = None  # providers the client holds keys for; None: it did not say
    failed: tuple[FailedModel, ...] = ()  # models that could not answer this turn, as the client saw it
    policy: Mapping[str, object] | None = None  # the request's own layer, as a policy file writes it
    problems: tuple[Problem, ...] = ()  # found while reading the request (an unknown field, a bad mention)
    tenant: str = ""  # whose documents the caller may see, besides those that are nobody's alone
    exclude: tuple[str, ...] = ()  # ids of rows, and files as `folder/path`, that the user wants left out
    document: DocumentSelection | None = None  # one document is asked for, not whatever helps with the text


class Purpose(StrEnum):
    """Who gets to read what was selected."""

    AGENT = "agent"
    VIEW = "view"  # a person, on a screen


@dataclass(frozen=True, slots=True)
class DocumentFocus:
    """Where in a document the question points: sections by id, a range, the words that were selected in it."""

    section_ids: tuple[str, ...] = ()
    range: Range | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class DocumentSelection:
    """`document` is a URI, or a path as mentions write it."""

    document: str
    focus: DocumentFocus | None = None
    purpose: Purpose = Purpose.AGENT


# --- policy: which model may serve what; read from policy files and settings, weakest layer first ------------------


class Effort(StrEnum):
    """How hard a model should think, as a matched rule asks for it."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class Capability(StrEnum):
    """What a model can do. The value is what policy files and requests write."""

    STREAMING = "streaming"
    TOOLS = "tools"
    JSON_OUTPUT = "jsonOutput"
    SYSTEM_PROMPT = "systemPrompt"
    IMAGES = "images"
    REASONING = "reasoning"
    MEMORY = "memory"


class RemoteMode(StrEnum):
    """Whether prompts may go to remote models; each is tighter than the one before."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class FailedModel:
    """A model that the client tried. `reason`: `rate_limited`, `provider_unavailable` or `request_timeout`."""

    model: str  # provider/model
    reason: str


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """Matches when every present condition holds; `paths` match when any glob matches any path of the turn."""

    name: str
    model: str  # provider/model
    fallbacks: tuple[str, ...] = ()
    priority: int = 1_000  # lower first
    effort: Effort = Effort.MEDIUM
    intent: Intent | None = None
    paths: tuple[str, ...] = ()
    local_only: bool = False
    requires: tuple[Capability, ...] = ()
    cost_limit: str = ""  # US dollars for one turn, a decimal number; "" for none


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    model: str
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredModel:
    """A model that the user describes because the catalogue does not know it, or knows it otherwise.

    Prices are US dollars for a million tokens, decimal numbers, "" when not known. Whether a model is local is never
    declared: it follows from its provider.
    """

    name: str  # provider/model
    window: int = 0  # tokens; 0: the catalogue's
    max_output: int = 0
    capabilities: tuple[Capability, ...] | None = None
    requires_key: bool | None = None
    input_price: str = ""
    output_price: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """All layers merged: what a later layer says can only tighten what an earlier one said.

    Globs are as in `.gitignore`, relative to a workspace folder. `restricted_paths` and `blocked_paths` add to those of
    the settings. `closed`: a layer could not be read, so everything counts as restricted.
    """

    rules: tuple[RoutingRule, ...] = ()  # in configuration order: user, workspace folders, request
    default: DefaultRoute | None = None
    models: tuple[DeclaredModel, ...] = ()
    allow_degraded: bool = False  # a model may serve although it lacks a capability that is not essential
    local_only: bool = False
    remote_mode: RemoteMode = RemoteMode.ALLOW
    restricted_paths: tuple[str, ...] = ()
    blocked_paths: tuple[str, ...] = ()
    privileged_paths: tuple[str, ...] = ()  # documents that `select` refuses whole
    strategy_paths: tuple[str, ...] = ()  # documents that people may view and agents may not have
    tenants: tuple[tuple[str, tuple[str, ...]], ...] = ()  # tenant → globs of the documents that are its alone
    record_restricted: bool = False  # saved manifests may have rows of restricted items
    closed: bool = False
    problems: tuple[Problem, ...] = ()


# --- the snapshot: one frozen view of the world for one request --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Diagnostic:
    uri: str
    start: Position
    end: Position
    severity: int  # 1 error .. 4 hint
    message: str
    source: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """An open document. `path` is relative to folder `folder`; both are None for a document outside every folder."""

    uri: str
    folder: str | None
    path: str | None
    text: str
    language: str
    dirty: bool  # differs from what was last opened or saved
    changed_lines: tuple[tuple[int, int], ...] = ()  # recently edited line ranges, newest first


@dataclass(frozen=True, slots=True)
class Folder:
    """A workspace folder: `key` is its name, unique in the workspace; `root` its real absolute path."""

    key: str
    uri: str
    root: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What every stage sees: documents, settings, folders, clock. `now` is seconds since the epoch, UTC."""

    folders: tuple[Folder, ...]
    documents: Mapping[str, Document]  # by canonical URI (see `haversack.uris`)
    settings: Settings
    now: float
    diagnostics: tuple[Diagnostic, ...] = ()
    recent: tuple[str, ...] = ()  # URIs of documents lately opened, changed or saved, newest first
    trusted: bool = True
    policy: Policy = field(default_factory=Policy)


# --- settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, validated. Names, defaults and ranges: `docs/settings.md`, made from `config.py`."""

    context_window: int = 0  # tokens; a cap on the model's window, 0: no cap
    include_hidden: bool = False
    include_secret_names: bool = False
    max_file_size: int = 1_000_000  # bytes
    vector_weight: float | None = None  # None: the embedder's own measured share
    text_weight: float | None = None
    top_k: int = 10  # passages of one file that search may find
    max_files: int = 15  # files found by search that may show code; further ones show an outline at most
    source_deadline_ms: int = 1_500
    embedder: str = "static"
    embedder_endpoint: str = ""
    embedder_model: str = ""
    embedder_key_variable: str = ""  # the environment variable that holds the key, never the key
    terms_endpoint: str = ""  # optional secondary model for search terms; off when empty
    terms_model: str = ""
    terms_key_variable: str = ""  # as above
    keep_recent: int = 4  # messages at the end of a conversation that compaction never touches
    large_tool_result: int = 200  # characters; longer ones of older turns become markers
    warning_share: float = 0.8  # of the window
    compact_share: float = 0.9  # of the window
    summarizer: str = "editor"
    summarizer_endpoint: str = ""
    summarizer_model: str = ""
    summarizer_key_variable: str = ""  # the environment variable that holds the key, never the key
    summarizer_timeout_ms: int = 20_000
    summarize_ahead: bool = False
    system_prompt: str = ""
    team_context: bool = True
    rules_enabled: bool = True  # rules files of the project are served
    rules_max_tokens: int = 2_000  # all of them together
    model: str = ""  # default `provider/model` when the request names none
    custom_windows: Mapping[str, int] = field(default_factory=dict[str, int])
    restricted_paths: tuple[str, ...] = ()  # patterns of files that no remote model may read
    remote_blocked_paths: tuple[str, ...] = ()  # the same effect, a list of its own
    section_summary_max_tokens: int = 150  # one section of a selected document, and its gist
    max_sections: int = 300  # sections of a selected document
    records_keep_days: int = 30  # 0: no records are kept
    redact_secrets: bool = True  # keys and passwords are hidden from remote models
    fim_prefix_tokens: int = 2_000  # of the text before the cursor, for inline completion
    fim_suffix_tokens: int = 500
    fim_context_tokens: int = 1_000  # of other files
    fim_reply_tokens: int = 256
    fim_definitions: bool = True  # headers of other files
    fim_similar: bool = True  # lines of other files alike to those at the cursor
    fim_recent: bool = True  # files lately edited or looked at
    fim_families: Mapping[str, str] = field(default_factory=dict[str, str])  # part of a model's name → form


# --- classify → Plan --------------------------------------------------------------------------------------------


class Intent(StrEnum):
    CHAT = "chat"
    PLAN = "plan"
    EDIT = "edit"
    REVIEW = "review"
    SUMMARIZE = "summarize"
    PROMPT = "prompt"
    SKILL = "skill"


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Source(StrEnum):
    """Where a candidate comes from; also the names of the gatherers in a manifest's timings."""

    MENTIONS = "mentions"
    SYMBOLS = "symbols"
    HYBRID = "hybrid"
    KNOWLEDGE = "knowledge"
    EDITS = "edits"
    DIAGNOSTICS = "diagnostics"
    DIFF = "diff"
    SUPPLIED = "supplied"
    RULES = "rules"
    DOCUMENT = "document"  # a selected document, and what the gate on documents kept from the other sources


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions taken before work starts. Deadlines are seconds from the start of gathering."""

    request: Request
    codebase: bool
    broad: bool  # about the project as a whole: overview files and architecture come first
    intent: Intent
    categories: tuple[str, ...]
    confidence: Confidence
    reason: str  # one line: why it was judged so
    terms: tuple[str, ...]  # search words, most telling first
    identifiers: tuple[str, ...]  # words of the text that look like code names, as written
    paths: tuple[str, ...]  # words of the text that look like paths, as written
    sources: tuple[tuple[Source, float], ...]
    mentions: tuple[Mention, ...]  # the request's and the text's, together
    tests_wanted: bool = False  # the question is about tests: no penalty for test paths
    docs_wanted: bool = False
    practical: bool = False  # how to build, run or test it: guides and build files come first
    changes: bool = False  # about the changes at hand: their diff comes first
    search_text: str = ""  # compared by meaning in place of the question: another language put into English
    selection: Selection | None = None  # of supplied items, when the request has a scope to judge them in


# The part of a candidate's relevance that says: a pasted trace points here.
TRACE_PART = "trace"

# --- gather → Candidate -----------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What a candidate is; decides its tier."""

    SELECTION = "selection"
    FILE = "file"  # an @-mentioned or active file
    SYMBOL = "symbol"
    CODE = "code"  # a chunk found by search
    OUTLINE = "outline"  # the signatures of one file
    OVERVIEW = "overview"  # README, manifest file, entry point of a broad question
    EDIT = "edit"
    DIAGNOSTIC = "diagnostic"
    DIFF = "diff"
    ARCHITECTURE = "architecture"
    MEMORY = "memory"
    TEAM = "team"
    SUPPLIED = "supplied"
    RULE = "rule"  # a file of rules that the project keeps for models; goes into the system message
    DOCUMENT_IDENTITY = "document"  # what a selected document is
    SECTION_SUMMARY = "section"  # one of its sections in a few words


class Detail(StrEnum):
    """How much of a candidate is served, richest first."""

    FULL = "full"
    SPANS = "spans"  # relevant spans with an outline of the rest
    OUTLINE = "outline"
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class Form:
    """One way to serve a candidate from a file: the whole lines in `spans`, sorted, not overlapping."""

    detail: Detail
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FileText:
    """The text that spans point into, as it is now: the open buffer, else the disk. Lines keep their ends."""

    folder: str
    path: str
    lines: tuple[str, ...]
    language: str
    content_hash: str
    unsaved: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something the model could read. It says where it comes from, nothing on what it is worth to the budget.

    Two shapes: with `file`, the text is lines of that file and `forms` name them (richest first, never empty);
    without, `text` is the whole text and is served whole or not at all (`title` heads it).
    `relevance` is the source's own score in 0..1, `parts` how it came about; `origins` are `folder/path` names of every
    file whose text is inside, so that privacy follows text wherever it goes.
    """

    id: str
    source: Source
    kind: Kind
    title: str
    relevance: float
    parts: Parts
    why: str
    required: bool = False
    file: FileText | None = None
    forms: tuple[Form, ...] = ()
    text: str = ""
    heading: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    file_rank: int = 10_000  # place of its file in the source's own list, best 0
    flags: tuple[str, ...] = ()  # e.g. "unsaved", "stale-index", "instruction-like"
    refused: tuple[Reason, ...] = ()  # not empty: a row of the manifest and no more, its `file` holds no line
    verdict: Verdict | None = None  # of a supplied item
    order: int | None = None  # its place in the one document that it is a part of; parts are served in this order


# --- mark → Marked ----------------------------------------------------------------------------------------------


class Reason(StrEnum):
    """Why a candidate was not served, or not whole. The value is what users read."""

    OVER_BUDGET = "over budget"
    DUPLICATE = "same text already in"
    COVERED = "inside another item"
    RESTRICTED = "restricted for remote models"
    FILE_CAP = "file limit reached"
    SHARE_CAP = "share of its kind used up"
    BELOW_FLOOR = "too little to do with the question"
    UNREADABLE = "could not be read"
    OUTSIDE = "outside the workspace"
    LATE = "not reached in time"
    SECRET = "holds a secret, which was hidden"
    UNWANTED = "you left it out"
    # Of supplied items. The first seven can come together, in this order; each of the others comes alone.
    SOURCE_AUTHORIZATION = "not authorized by its source"
    TENANT = "for another tenant"
    PURPOSE = "for another purpose"
    CLASSIFICATION = "classified above the ceiling"
    FRESHNESS = "no longer fresh"
    INJECTION = "prompt injection risk"
    REDACTION = "no replacement that may be served"
    MISSING_TOKENS = "token cost not stated"
    SUPPLIED_BUDGET = "over the budget of supplied items"
    NO_SCOPE = "the request names no scope to judge it in"
    MALFORMED = "malformed"
    PRIVILEGED = "privileged document"
    STRATEGY = "strategy document, for people only"


@dataclass(frozen=True, slots=True)
class Marked:
    """A candidate that passed the gate. Made by `mark` alone; only this goes further."""

    candidate: Candidate
    required: bool
    restricted: bool
    refused: tuple[Reason, ...] = ()  # not empty: goes to the manifest, never to the prompt


# --- route → Route ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Model:
    """A catalogue entry. Windows and limits in tokens; `tokenizer` names a counter family of `tokens.py`."""

    name: str
    provider: str
    family: str
    window: int
    max_output: int
    tokenizer: str
    gather_budget: int
    local: bool
    assumed: bool = False  # not in the catalogue: window and family are safe guesses
    capabilities: tuple[Capability, ...] = ()
    capabilities_known: bool = True  # False: nobody said what it can do
    requires_key: bool = False
    input_price: str = ""  # US dollars for a million tokens, a decimal number; "" when not known
    output_price: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """A model that was considered and lost. `code` is stable, `reason` a sentence for users."""

    model: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What the turn may cost in US dollars, decimal numbers: with a short reply, and with the longest one."""

    low: str
    high: str
    limit: str = ""  # the matched rule's ceiling


@dataclass(frozen=True, slots=True)
class Route:
    """The model and its room. `window` is the effective one: the model's, capped by the user's setting."""

    model: Model
    window: int
    window_source: str  # "setting", "model", "assumed"
    reply_reserve: int
    max_output: int = 0  # what may be asked of the model as its reply, once the prompt's size is known
    override_used: bool = False
    matched_rule: str = ""  # the rule by its name, or what else chose
    matched_because: str = ""  # what of the turn met the rule; names a path, which may be restricted
    fallback_used: bool = False
    task_type: Intent = Intent.CHAT
    effort: Effort = Effort.MEDIUM
    skipped: tuple[Skip, ...] = ()  # in the order tried
    degraded: tuple[Capability, ...] = ()  # wanted, not had, and the policy allows to go on without
    cost: Cost | None = None  # None: the model's prices are not known
    approvals: tuple[str, ...] = ()  # what the client must ask the user first: `cost_limit`, `remote_disclosure`

    @property
    def chosen_by(self) -> str:
        """The rule and what met it, for the one who asked."""
        return f"{self.matched_rule}: {self.matched_because}" if self.matched_because else self.matched_rule


# --- score → Scored ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scored:
    """`score` is the sum of `parts`; its tier part dominates, so kinds never cross. `tier` ranks the kind, best 0."""

    marked: Marked
    score: float
    parts: Parts
    tier: int


# --- pack → Packed ----------------------------------------------------------------------------------------------


class Outcome(StrEnum):
    INCLUDED = "included"
    SHORTENED = "shortened"
    REDACTED = "redacted"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class Block:
    """Text as served, in order. For a file: whole lines of `spans`, holes shown by a gap line inside `text`.

    `tokens` counts what the block costs in the prompt, heading and fence included. `items` are candidate ids inside.
    """

    title: str
    folder: str
    path: str | None
    spans: tuple[tuple[int, int], ...]
    kind: Kind
    detail: Detail
    text: str
    tokens: int
    score: float
    items: tuple[str, ...]
    language: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one candidate. `tokens_before` is its richest form alone, `tokens_after` what it added."""

    id: str
    outcome: Outcome
    detail: Detail | None
    reasons: tuple[Reason, ...]
    tokens_before: int
    tokens_after: int
    note: str = ""
    flags: tuple[str, ...] = ()  # joined with the candidate's own


@dataclass(frozen=True, slots=True)
class Packed:
    blocks: tuple[Block, ...]
    decisions: tuple[Decision, ...]  # one per Scored, in the order given
    budget: int
    used: int


# --- compact → History ------------------------------------------------------------------------------------------


class CompactTier(StrEnum):
    """How a conversation was shortened, mildest first."""

    NONE = "NONE"
    TOOL_STRIP = "TOOL_STRIP"
    MULTI_CHUNK = "MULTI_CHUNK"
    PARTIAL = "PARTIAL"
    PLAIN_FALLBACK = "PLAIN_FALLBACK"


class WindowState(StrEnum):
    OK = "ok"
    WARNING = "warning"  # compaction is near
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class Room:
    """What a conversation may take, in tokens: above `limit` it is compacted, down to about `aim`."""

    limit: int
    warning: int
    aim: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of a conversation that a model is to summarize in at most `most` tokens. `key` names its content."""

    key: str
    text: str
    most: int
    tokens: int  # of the messages it stands for


@dataclass(frozen=True, slots=True)
class Summary:
    """A message of the compacted history that stands for others, and where it came from."""

    key: str  # names the content of the sources
    sources: tuple[int, ...]  # places in the history as given
    ids: tuple[str, ...]  # of the sources, as far as they have any
    by: str  # who wrote it: "extract", "editor" or the provider
    message: Message
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class History:
    """The conversation as it goes into the prompt.

    `wanted`: summaries by a model that would have given a milder tier than `tier`. `ahead`: those that the next
    compaction will want. `used` is what the whole prompt takes of the window without what gathered context adds.
    """

    messages: tuple[Message, ...]
    tier: CompactTier
    tokens_before: int
    tokens_after: int
    warning: bool = False
    note: str = ""
    summaries: tuple[Summary, ...] = ()
    wanted: tuple[Batch, ...] = ()
    ahead: tuple[Batch, ...] = ()
    used: int = 0
    state: WindowState = WindowState.OK


# --- assemble → Prompt, manifest → Manifest, pipeline → Bundle --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """`tokens` counts all of it, framing included; `stable_chars` is the length of the unchanging head."""

    messages: tuple[Message, ...]
    tokens: int
    stable_chars: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """One gatherer or stage. `status` is "ok", "late" or "failed"; milliseconds, and a `deadline` of 0 for a stage."""

    name: str
    status: str
    milliseconds: float
    n_candidates: int = 0
    deadline: float = 0.0


@dataclass(frozen=True, slots=True)
class ManifestItem:
    """One row for one candidate; carries no text of it."""

    id: str
    source: Source
    kind: Kind
    title: str
    folder: str
    path: str | None
    lines: tuple[int, int] | None  # from 0, end exclusive, covering
    required: bool
    restricted: bool
    outcome: Outcome
    detail: Detail | None
    reasons: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    score: float
    parts: Parts
    why: str
    content_hash: str
    flags: tuple[str, ...]
    note: str = ""
    verdict: Verdict | None = None  # of a supplied item


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Where the window went. `counted` is "exact" or "estimated", with the counter's name."""

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


@dataclass(frozen=True, slots=True)
class Prefix:
    """How much of the prompt begins as the last turn's did, in characters. Not `known`: there was no last turn."""

    known: bool
    shared: int
    total: int

    @property
    def share(self) -> float:
        return self.shared / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Manifest:
    items: tuple[ManifestItem, ...]
    timings: tuple[Timing, ...]
    tokens: TokenUse
    problems: tuple[Problem, ...]
    classification: Mapping[str, object]
    index: Mapping[str, object]  # generation and tier per folder
    hash: str
    selection: Selection | None = None  # of supplied items
    prefix: Prefix | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """The reply."""

    status: str
    prompt: Prompt
    blocks: tuple[Block, ...]
    route: Route
    manifest: Manifest
    history: History
    version_hash: str
    problems: tuple[Problem, ...]
    record_id: str = ""  # under which its record is kept; "" when none is
    to_decrypt: tuple[Message, ...] = ()  # sealed messages that the prompt needs, and no other
    turn: str = ""  # to go on with when the status is `awaitingDecrypt`
    expires_in: float = 0.0  # seconds that the turn waits


# --- a selected document ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentIdentity:
    """What a document is. `title` and `gist` are its own words, or None: nothing is invented for them."""

    folder: str
    path: str
    title: str | None
    kind: str  # its language or document type
    status: str  # "unsaved", "open" or "saved"
    generation: int | None  # of the index that holds exactly this text; None: no index does
    n_lines: int
    n_characters: int
    gist: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: its own lines begin at `lines[0]`; `lines` include those of the sections inside it."""

    id: str
    order: int
    kind: str
    heading_path: tuple[str, ...]
    summary: str
    summary_truncated: bool
    lines: tuple[int, int]
    focus: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """The reply for one document. `sections` are the served ones; `truncated`: there are others."""

    bundle: Bundle
    identity: DocumentIdentity
    sections: tuple[Section, ...]
    focus: DocumentFocus | None
    truncated: bool
