"""What of an answer is kept as its record, and the hash that anyone with the record alone can recompute.

A record holds references and numbers: no text of files, no question, no words that somebody wrote but the names of
folders and of the policy's rules. What could give such words away to a guess (the question, ids made from mentions,
texts that are no file) is kept as a hash under a key that lies beside the database and not in it. An item restricted
for remote models is kept without its place, as a row that counts and cannot be read, unless the policy lets it be kept
whole.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, cast

from haversack.manifest import canonical_hash, canonical_json
from haversack.types import (
    Bundle,
    Eligibility,
    Folder,
    History,
    ManifestItem,
    Outcome,
    Problem,
    Request,
    Route,
    Skip,
    Snapshot,
    Verdict,
)

# The layout of `Record.document`. 1: first layout.
FORMAT_VERSION = 1

# Fields with words for people: they may quote the question, a file or a restricted path. All other fields are kept.
LEFT_OUT: Mapping[type, frozenset[str]] = {
    ManifestItem: frozenset({"title", "why", "note"}),
    Verdict: frozenset({"note"}),
    Eligibility: frozenset({"redacted"}),
    Route: frozenset({"matched_because"}),
    Skip: frozenset({"reason"}),
    Problem: frozenset({"message", "remedy"}),
    History: frozenset({"messages", "note", "summaries", "wanted", "ahead"}),
}
# What is kept of a restricted item, so that counts and sums still add up. A new field is not among them by itself.
OF_RESTRICTED = (
    *("id", "source", "kind", "required", "restricted", "outcome", "detail", "reasons"),
    *("tokens_before", "tokens_after"),
)
# What is kept of the classification: its search words and its reason are words of the question.
OF_CLASSIFICATION = ("codebase", "broad", "intent", "categories", "confidence")


@dataclass(frozen=True, slots=True)
class Record:
    """One kept manifest. `document` is canonical JSON, `hash` its SHA-256; `seal` binds it to its id and time."""

    id: str
    time: float  # of the snapshot, seconds since the epoch, UTC
    document: str
    hash: str
    seal: str

    @property
    def content(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", json.loads(self.document))


@dataclass(frozen=True, slots=True)
class Summary:
    """A record as one line. `withheld` counts the restricted rows without a place; of a record that is not `intact`
    only id, time and hash are told."""

    id: str
    time: float
    hash: str
    intact: bool
    model: str = ""  # provider/model
    recipe: str = ""
    tokens: int = 0
    included: int = 0
    shortened: int = 0
    redacted: int = 0
    excluded: int = 0
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a record is made from, frozen when the answer was ready."""

    request: Request
    snapshot: Snapshot
    bundle: Bundle


def make_record(id: str, question: Question, key: bytes) -> Record:
    """The record of an answer. Equal answers to equal questions have equal hashes under one key."""
    document = canonical_json(_document(question, key))
    digest = hashlib.sha256(document.encode("ascii")).hexdigest()
    time = question.snapshot.now
    return Record(id, time, document, digest, _seal(id, time, digest))


def faults(record: Record) -> tuple[str, ...]:
    """What does not agree in a record, () when it is as it was written."""
    found: list[str] = []
    try:
        is_whole = canonical_json(record.content) == record.document and record.content["format"] == FORMAT_VERSION
    except (ValueError, TypeError, KeyError, RecursionError):
        is_whole = False
    digest = hashlib.sha256(record.document.encode("utf-8", "surrogatepass")).hexdigest()
    if not is_whole or digest != record.hash:
        found.append("its content does not have its hash")
    if _seal(record.id, record.time, record.hash) != record.seal:
        found.append("its id, time or hash is not the one it was written with")
    return tuple(found)


def summary(record: Record) -> Summary:
    if faults(record):
        return Summary(record.id, record.time, record.hash, intact=False)
    content = record.content
    model, entries = content["scope"]["route"]["model"], content["entries"]
    outcomes = Counter[str](entry["outcome"] for entry in entries)
    return Summary(
        id=record.id,
        time=record.time,
        hash=record.hash,
        intact=True,
        model=f"{model['provider']}/{model['name']}",
        recipe=content["scope"]["recipe"],
        tokens=content["usage"]["tokens"]["total"],
        **{name: outcomes[name] for name in ("included", "shortened", "redacted", "excluded")},
        withheld=sum(entry["withheld"] for entry in entries),
    )


def is_served(entry: Mapping[str, Any]) -> bool:
    return entry["outcome"] != Outcome.EXCLUDED


def keyed(text: str, key: bytes) -> str:
    """A name for `text` that nobody can find by guessing who does not have the key."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


def _document(question: Question, key: bytes) -> dict[str, object]:
    request, snapshot, bundle = question.request, question.snapshot, question.bundle
    manifest = bundle.manifest
    return {
        "format": FORMAT_VERSION,
        "scope": {
            "folders": _folders(snapshot.folders, key),
            "folder": request.folder,
            "recipe": request.recipe,
            "question": keyed(request.text, key),
            "route": _plain(bundle.route),
            "classification": {
                name: _plain(manifest.classification[name])
                for name in OF_CLASSIFICATION
                if name in manifest.classification
            },
            "index": _plain(manifest.index),
        },
        "budget": {"asked": request.budget_tokens, "context": manifest.tokens.context_budget},
        "usage": {
            "tokens": _plain(manifest.tokens),
            "history": _plain(bundle.history),
            "selection": _plain(manifest.selection),
        },
        "problems": [_plain(problem) for problem in bundle.problems],
        "entries": [_entry(item, key, whole=snapshot.policy.record_restricted) for item in manifest.items],
    }


def _folders(folders: Iterable[Folder], key: bytes) -> list[object]:
    """Names as the client gave them, and roots by which another client knows the same folder again."""
    return [{"name": folder.key, "root": keyed(folder.root, key)} for folder in folders]


def folder_names(content: Mapping[str, Any], folders: Sequence[Folder], key: bytes) -> dict[str, str]:
    """The names of folders in a record → their keys now, for those that are open."""
    now = {keyed(folder.root, key): folder.key for folder in folders}
    return {each["name"]: now[each["root"]] for each in content["scope"]["folders"] if each["root"] in now}


def _entry(item: ManifestItem, key: bytes, *, whole: bool) -> dict[str, object]:
    row = cast("dict[str, object]", _plain(item))
    row["id"] = keyed(item.id, key)
    if item.lines is None and item.content_hash:
        # The hash of a short text that is no file, such as a memory, could be found by guessing.
        row["content_hash"] = keyed(item.content_hash, key)
    withheld = item.restricted and not whole
    kept = {name: row[name] for name in OF_RESTRICTED} if withheld else row
    return {**kept, "withheld": withheld}


def _seal(id: str, time: float, digest: str) -> str:
    return canonical_hash([FORMAT_VERSION, id, time, digest])


def _plain(value: object) -> object:
    """As JSON can hold it: dataclasses as their kept fields, numbers that are none as null."""
    if isinstance(value, str | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return [_plain(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in cast("Mapping[object, object]", value).items()}
    return {name: _plain(getattr(value, name)) for name in kept_fields(type(value))}


@cache
def kept_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that records have, new ones without further ado. Raises TypeError for other types."""
    name = kind.__name__
    if not is_dataclass(kind):
        raise TypeError(name)
    return tuple(each.name for each in fields(kind) if each.name not in LEFT_OUT.get(kind, frozenset()))
