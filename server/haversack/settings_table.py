"""The table of settings: each with its default, its range, where it may be set and what it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast
from urllib.parse import urlsplit


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


# --- readers: a raw value → the field's value, or ValueError ------------------------------------------------------


def read_tokens(value: object) -> int:
    """`16k`, `128K`, `1m`, `16000` or a number. k is 1,000."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]{1,12}(?:[_,][0-9]{3})*(?:\.[0-9]{1,6})?)\s*([kKmM]?)\s*", value)
        if not found:
            raise ValueError(value)
        unit = {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()]
        value = float(re.sub("[_,]", "", found[1])) * unit
    return int(read_number(value, 1_000, 10_000_000))


def _window_cap(value: object) -> int:
    if isinstance(value, str) and value.strip().lower() in ("", "auto"):
        return 0
    return read_tokens(value)


def _megabytes(value: object) -> int:
    if isinstance(value, str):
        value = re.sub(r"\s*mb\s*$", "", value, flags=re.IGNORECASE)
    return int(read_number(value, 0.001, 100) * 1_000_000)


def read_number(value: object, low: float, high: float) -> float:
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[0-9]{1,12}(\.[0-9]{1,12})?\s*", value):
            raise ValueError(value)
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(value)
    return float(value)


def _whole(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = read_number(value, low, high)
        if number != int(number):
            raise ValueError(value)
        return int(number)

    return read


def _share(value: object) -> float:
    return read_number(value, 0, 1)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(value)


def _words(limit: int) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or len(value) > limit:
            raise ValueError(value)
        return value.strip()

    return read


def _variable_name(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"(?:[A-Za-z_]\w{0,99})?", value.strip(), re.ASCII):
        return value.strip()
    raise ValueError("not a name of an environment variable")


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if not isinstance(value, str) or value.strip().lower() not in choices:
            raise ValueError(value)
        return value.strip().lower()

    return read


def _web_address(value: object) -> str:
    address = _words(2_000)(value)
    if address and not is_web_address(address):
        raise ValueError(value)
    return address


def is_web_address(text: str) -> bool:
    """Whether `text` is an http or https address of a host, without user name or password in it."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _windows(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ValueError(value)
    return {str(name): read_tokens(window) for name, window in cast("Mapping[object, object]", value).items()}


def _globs(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError("not a list")
    items = cast("Sequence[object]", value)
    globs = [item for item in items if isinstance(item, str)]
    if len(globs) != len(items):
        raise ValueError("not a list of strings")
    return tuple(dict.fromkeys(globs))


# --- the table ----------------------------------------------------------------------------------------------------

EMBEDDERS = ("static", "minilm", "model2vec", "ollama", "openai")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "contextWindow",
        "context_window",
        _window_cap,
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
        _flag,
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
        _flag,
        "false",
        "true or false",
        (Scope.USER,),
        "Index files that hold secrets by their name (`.env`, private keys), where no other rule leaves them out.",
        "`walk`: which files are indexed; `workspace`: which may be read by a mention",
    ),
    Setting(
        "maxFileSize",
        "max_file_size",
        _megabytes,
        "1",
        "megabytes (1,000,000 bytes), 0.001 to 100, as a number or a string",
        STANDING,
        "Larger files are not indexed.",
        "`walk`: such a file is skipped as too large",
    ),
    Setting(
        "hybridSearch.vectorWeight",
        "vector_weight",
        _share,
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
        _share,
        "the embedder's own (0.4 for the built-in table)",
        "0 to 1",
        ANYWHERE,
        "How much matching words count in the search score.",
        "`search`: the weighted sum of vector and keyword scores",
    ),
    Setting(
        "hybridSearch.topK",
        "top_k",
        _whole(1, 50),
        "10",
        "1 to 50",
        ANYWHERE,
        "How many passages of one file search may find.",
        "`gatherers.hybrid`: the number of passages asked for in each file",
    ),
    Setting(
        "hybridSearch.maxFiles",
        "max_files",
        _whole(1, 200),
        "15",
        "1 to 200",
        ANYWHERE,
        "How many of the files that search found may show code; further ones show their outline at most.",
        "`gatherers.hybrid`: which files' passages become candidates",
    ),
    Setting(
        "gather.deadlineMs",
        "source_deadline_ms",
        _whole(10, 60_000),
        "1500",
        "10 to 60,000 milliseconds",
        ANYWHERE,
        "How long a source (search, git …) may take; what you name, twice as long. A late one never costs the reply.",
        "`classify`: the deadline of every source in the plan",
    ),
    Setting(
        "embedding.provider",
        "embedder",
        _one_of(*EMBEDDERS),
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
        _words(2_000),
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
        _words(200),
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
        _variable_name,
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
        _web_address,
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
        _words(200),
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
        _variable_name,
        "empty (no key)",
        "the name of an environment variable, never the key itself",
        (Scope.USER,),
        "The environment variable that holds that server's key. The server gets it as a bearer token.",
        "`search_terms`: the key of that call",
        hidden=True,
    ),
    Setting(
        "systemPrompt",
        "system_prompt",
        _words(100_000),
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
        _flag,
        "true",
        "true or false",
        ANYWHERE,
        "Let questions about people see who owns and who lately changed the files in question (CODEOWNERS and git).",
        "`gatherers.knowledge`: team items among the candidates",
    ),
    Setting(
        "model",
        "model",
        _words(200),
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
        _windows,
        "none",
        "model name → tokens (`32k` or a number)",
        ANYWHERE,
        "Windows of models that Haversack does not know, or that run with another window than usual.",
        "`route`: the model's window",
    ),
    Setting(
        "privacy.restrictedPaths",
        "restricted_paths",
        _globs,
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
        _globs,
        "none",
        "a list of patterns as in `.gitignore`, relative to a workspace folder",
        ANYWHERE,
        "More files whose text must not go to a remote model: the list that belongs to remote use alone, apart from "
        "what is restricted as such. Layers add up.",
        "`mark`: as `privacy.restrictedPaths`",
    ),
)
