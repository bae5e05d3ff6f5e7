"""The table of settings: each with its default, its range, where it may be set and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from haversack.settings_values import (
    one_of,
    read_flag,
    read_globs,
    read_megabytes,
    read_share,
    read_variable_name,
    read_web_address,
    read_window_cap,
    read_windows,
    whole_number,
    within,
    words,
)


class Scope(StrEnum):
    """Where settings come from, weakest first. A later layer wins, except that privacy lists only ever grow."""

    USER = "user"
    WORKSPACE = "workspace"
    REQUEST = "request"


ANYWHERE = (Scope.USER, Scope.WORKSPACE, Scope.REQUEST)
# What shapes the index cannot differ from one request to the next.
STANDING = (Scope.USER, Scope.WORKSPACE)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `name` comes after `haversack.`; `read` turns a raw value into the field's, or raises
    ValueError. `allowed` and `default` are what users read. `guarded`: not taken from an untrusted workspace."""

    name: str
    field: str
    read: Callable[[object], object]
    default: str
    allowed: str
    scopes: tuple[Scope, ...]
    description: str
    effect: str
    guarded: bool = False
    hidden: bool = False  # a wrong value is not repeated in the problem: it may be a secret in the wrong place


# --- the table ----------------------------------------------------------------------------------------------------

EMBEDDERS = ("static", "minilm", "model2vec", "ollama", "openai")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "contextWindow",
        "context_window",
        read_window_cap,
        "auto",
        "`auto`, `4k`, `8k`, `16k`, `32k`, `128k`, or a number of tokens from 1,000 (k is 1,000)",
        ANYWHERE,
        "The most tokens a prompt and its reply may take together. `auto`: the model's own window, or 16,000 when "
        "the model is not known. A cap only: it never makes a model's window larger.",
        "`route`: the window that every budget is cut from",
    ),
    Setting(
        "includeHidden",
        "include_hidden",
        read_flag,
        "false",
        "true or false",
        STANDING,
        "Index files and folders whose name starts with a dot. Version control folders and files that hold secrets "
        "by their name stay out.",
        "`walk`: which files are indexed; `workspace`: which may be read by a mention",
    ),
    Setting(
        "includeSecretNames",
        "include_secret_names",
        read_flag,
        "false",
        "true or false",
        (Scope.USER,),
        "Index files that hold secrets by their name (`.env`, private keys), where no other rule leaves them out.",
        "`walk`: which files are indexed; `workspace`: which may be read by a mention",
    ),
    Setting(
        "maxFileSize",
        "max_file_size",
        read_megabytes,
        "1",
        "megabytes (1,000,000 bytes), 0.001 to 100, as a number or a string",
        STANDING,
        "Larger files are not indexed.",
        "`walk`: such a file is skipped as too large",
    ),
    Setting(
        "hybridSearch.vectorWeight",
        "vector_weight",
        read_share,
        "the embedder's own (0.6 for the built-in table)",
        "0 to 1",
        ANYWHERE,
        "How much meaning counts in the search score. When only one of the two weights is set, the other is what is "
        "left of 1.",
        "`search`: the weighted sum of vector and keyword scores",
    ),
    Setting(
        "hybridSearch.textWeight",
        "text_weight",
        read_share,
        "the embedder's own (0.4 for the built-in table)",
        "0 to 1",
        ANYWHERE,
        "How much matching words count in the search score.",
        "`search`: the weighted sum of vector and keyword scores",
    ),
    Setting(
        "hybridSearch.topK",
        "top_k",
        whole_number(1, 50),
        "10",
        "1 to 50",
        ANYWHERE,
        "How many passages of one file search may find.",
        "`gatherers.hybrid`: the number of passages asked for in each file",
    ),
    Setting(
        "hybridSearch.maxFiles",
        "max_files",
        whole_number(1, 200),
        "15",
        "1 to 200",
        ANYWHERE,
        "How many of the files that search found may show code; further ones show their outline at most.",
        "`gatherers.hybrid`: which files' passages become candidates",
    ),
    Setting(
        "gather.deadlineMs",
        "source_deadline_ms",
        whole_number(10, 60_000),
        "1500",
        "10 to 60,000 milliseconds",
        ANYWHERE,
        "How long a source (search, git …) may take; what you name, twice as long. A late one never costs the reply.",
        "`classify`: the deadline of every source in the plan",
    ),
    Setting(
        "embedding.provider",
        "embedder",
        one_of(*EMBEDDERS),
        "static",
        "`static` (built in), `minilm` (extra package), `model2vec` (a folder), `ollama` or `openai` (a server)",
        STANDING,
        "What turns text into vectors for search by meaning. A change embeds the workspace anew in the background.",
        "`embed`: the embedder of index and queries",
        guarded=True,
    ),
    Setting(
        "embedding.endpoint",
        "embedder_endpoint",
        words(2_000),
        "empty",
        "an http or https address (`ollama`, `openai`) or the path of a folder (`model2vec`)",
        STANDING,
        "Where the embedding server listens, or where the model lies. Indexed text is sent there.",
        "`embed`: the address of embedding calls",
        guarded=True,
    ),
    Setting(
        "embedding.model",
        "embedder_model",
        words(200),
        "empty",
        "the server's name of a model",
        STANDING,
        "The embedding model of the server.",
        "`embed`: named in embedding calls",
        guarded=True,
    ),
    Setting(
        "embedding.keyVariable",
        "embedder_key_variable",
        read_variable_name,
        "empty (no key)",
        "the name of an environment variable, never the key itself",
        (Scope.USER,),
        "The environment variable that holds the embedding server's key. The server gets it as a bearer token.",
        "`local_index`: the key of embedding calls",
        hidden=True,
    ),
    Setting(
        "searchTerms.endpoint",
        "terms_endpoint",
        read_web_address,
        "empty (off)",
        "an http or https address that speaks the OpenAI chat protocol",
        STANDING,
        "A small model that proposes further search words for a question. It gets the question, no files, and is "
        "waited for 200 ms at most.",
        "`search_terms`: further search terms in the plan",
        guarded=True,
    ),
    Setting(
        "searchTerms.model",
        "terms_model",
        words(200),
        "empty",
        "the server's name of a model",
        STANDING,
        "The model asked for search words.",
        "`search_terms`: named in that call",
        guarded=True,
    ),
    Setting(
        "searchTerms.keyVariable",
        "terms_key_variable",
        read_variable_name,
        "empty (no key)",
        "the name of an environment variable, never the key itself",
        (Scope.USER,),
        "The environment variable that holds that server's key. The server gets it as a bearer token.",
        "`search_terms`: the key of that call",
        hidden=True,
    ),
    Setting(
        "history.warningShare",
        "warning_share",
        read_share,
        "0.8",
        "0 to 1, a part of the window",
        ANYWHERE,
        "How full the window is when the answer says that compaction is near. All that must be in the prompt counts; "
        "gathered context does not, since it takes what is left. At 0.8 a few turns remain for the user to act, or for "
        "summaries to be written ahead.",
        "`window`: the state `warning` in the answer, and when summaries are written ahead",
    ),
    Setting(
        "history.compactShare",
        "compact_share",
        within(0.1, 0.97),
        "0.9",
        "0.1 to 0.97, a part of the window",
        ANYWHERE,
        "How full the window is when old messages are compacted. What is above it is left to the reply: a tenth of a "
        "16k window is an answer with a changed function in it. The shortest reply (256 tokens) is always kept.",
        "`window`: the room of the conversation, and the least of the reply",
    ),
    Setting(
        "history.keepRecent",
        "keep_recent",
        whole_number(1, 100),
        "4",
        "1 to 100 messages",
        ANYWHERE,
        "The last messages of a conversation, which compaction never touches. The question refers to them; four are "
        "two exchanges, or one with a tool call.",
        "`compact`: which messages stay as they are",
    ),
    Setting(
        "history.largeToolResult",
        "large_tool_result",
        whole_number(100, 1_000_000),
        "200",
        "100 to 1,000,000 characters",
        ANYWHERE,
        "Longer results and arguments of tools in older turns become markers when the window is full. The marker "
        "itself takes about 120 characters, so below 200 nothing is won.",
        "`compact`: what the tier `TOOL_STRIP` takes out",
    ),
    Setting(
        "systemPrompt",
        "system_prompt",
        words(100_000),
        "empty (Haversack's own)",
        "text of up to 100,000 characters",
        ANYWHERE,
        "Your own instructions, put after Haversack's in the system message.",
        "`assemble`: part of the prompt's stable head",
        guarded=True,
    ),
    Setting(
        "teamContext",
        "team_context",
        read_flag,
        "true",
        "true or false",
        ANYWHERE,
        "Let questions about people see who owns and who lately changed the files in question (CODEOWNERS and git).",
        "`gatherers.knowledge`: team items among the candidates",
    ),
    Setting(
        "model",
        "model",
        words(200),
        "empty (`ollama/qwen2.5-coder:7b`)",
        "`provider/model`, or a bare model name",
        ANYWHERE,
        "The model prompts are made for when a request names none.",
        "`route`: window, tokenizer and gather budget",
        guarded=True,
    ),
    Setting(
        "models.windows",
        "custom_windows",
        read_windows,
        "none",
        "model name → tokens (`32k` or a number)",
        ANYWHERE,
        "Windows of models that Haversack does not know, or that run with another window than usual.",
        "`route`: the model's window",
    ),
    Setting(
        "privacy.restrictedPaths",
        "restricted_paths",
        read_globs,
        "none",
        "a list of patterns as in `.gitignore`, relative to a workspace folder",
        ANYWHERE,
        "Files whose text must not go to a remote model. Layers add up: a workspace can add paths, never remove any. "
        "While any pattern is set, an open file outside every workspace folder is restricted as well.",
        "`mark`: items with text of such files are left out of prompts for remote models; `embed`: they are not sent "
        "to an embedding service on another machine",
    ),
    Setting(
        "privacy.remote.blockedPaths",
        "remote_blocked_paths",
        read_globs,
        "none",
        "a list of patterns as in `.gitignore`, relative to a workspace folder",
        ANYWHERE,
        "More files whose text must not go to a remote model: the list that belongs to remote use alone, apart from "
        "what is restricted as such. Layers add up.",
        "`mark`: as `privacy.restrictedPaths`",
    ),
    Setting(
        "privacy.redactSecrets",
        "redact_secrets",
        read_flag,
        "true",
        "true or false",
        (Scope.USER,),
        "Hide keys, tokens and passwords from remote models, wherever they stand in a prompt. The manifest names kind "
        "and line.",
        "`redact`: a mark stands in place of each secret",
        guarded=True,
    ),
    Setting(
        "records.keepDays",
        "records_keep_days",
        whole_number(0, 3_650),
        "30",
        "0 to 3,650 days",
        (Scope.USER,),
        "How long the records of answers are kept (`haversack log`). They hold references and numbers, never text. "
        "0 keeps none and removes those there are. The newest 1,000 of a folder are kept at most.",
        "`recorder`: whether an answer gets a record; `records`: which ones are removed",
    ),
    Setting(
        "select.sectionSummaryMaxTokens",
        "section_summary_max_tokens",
        whole_number(16, 2_000),
        "150",
        "16 to 2,000 tokens, estimated to err high",
        ANYWHERE,
        "How long the summary of one section of a selected document may be, and its gist. A longer one is cut and says "
        "so; the limit is what makes it safe to keep a section in focus whatever the budget.",
        "`gatherers.sections`: the summaries of `haversack/select`",
    ),
    Setting(
        "select.maxSections",
        "max_sections",
        whole_number(1, 2_000),
        "300",
        "1 to 2,000",
        ANYWHERE,
        "How many sections of a selected document are looked at: those nearest to the focus, or the first ones.",
        "`gatherers.document`: the sections of `haversack/select`",
    ),
)
