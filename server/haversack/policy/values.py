"""Readers of the values of a policy: a node of the text → the typed value, or a finding that says what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import TypeVar

from haversack.policy.findings import Finding, Lines, Severity, looks_secret, nearest, shown, span_of
from haversack.policy.json_reader import Member, Node, Span
from haversack.policy.rules import glob_pattern
from haversack.types import Capability

S = TypeVar("S", bound=StrEnum)

# Every key there is, by the object it stands in; `[]` stands for each entry of a list. The JSON schema has the same.
KEYS: Mapping[str, tuple[str, ...]] = {
    "": (
        "$schema",
        "version",
        "default",
        "rules",
        "models",
        "allowDegraded",
        "localOnly",
        "privacy",
        "documents",
        "records",
    ),
    "default": ("model", "fallbacks"),
    "rules[]": (
        "name",
        "priority",
        "effort",
        "intent",
        "paths",
        "localOnly",
        "requiresCapabilities",
        "model",
        "fallbacks",
        "costLimit",
    ),
    "models[]": ("name", "window", "maxOutput", "capabilities", "requiresKey", "inputPrice", "outputPrice"),
    "privacy": ("restrictedPaths", "remote"),
    "privacy.remote": ("mode", "blockedPaths"),
    "documents": ("privilegedPaths", "strategyPaths", "tenants"),
    "records": ("keepRestricted",),
}
# Keys that restrict. One that is misspelt must not go unnoticed: the document closes.
_GUARDING = ("privacy", "documents", "localOnly", *KEYS["privacy"], *KEYS["privacy.remote"], *KEYS["documents"])

# So near to such a key that it may have been meant: `privcy`, but not `comment`, which shares letters with `documents`.
_ALIKE = 0.8

MAX_GLOBS = 2_000
# A prompt is fitted into each that may serve until one has room, so this bounds what a question can cost.
MAX_FALLBACKS = 20
LONGEST_TEXT = 4_096
LONGEST_NAME = 200
MAX_FINDINGS = 500

# Errors beside which the value is used all the same, as their messages say.
_HARMLESS = frozenset({"invalid_glob", "invalid_privacy_glob", "self_fallback"})

_MODEL = re.compile(r"[^\s/]+/\S+")
_AMOUNT = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,12})?")


def inside(place: str, key: str) -> str:
    """The place of a member. A key that may be a secret is not repeated."""
    name = "(hidden)" if looks_secret(key) else key[:LONGEST_NAME]
    return f"{place}.{name}" if place else name


class Notes:
    """The findings of one document, and what they mean for the rest of it."""

    def __init__(self, layer: str, lines: Lines) -> None:
        self.spans: dict[str, Span] = {}
        self.closed = False
        self.models: list[tuple[str, str]] = []  # every name of a model, and its place
        self.rules: list[tuple[str, str]] = []  # the same of rules
        self.local_rules: list[str] = []  # places of local-only rules
        self._layer = layer
        self._lines = lines
        self._findings: list[Finding] = []
        self._faulty: set[str] = set()

    def add(self, code: str, place: str, message: str, remedy: str, span: Span | None = None) -> None:
        where = self._lines.range(span or span_of(place, self.spans))
        finding = Finding(code, message, remedy, place, where, self._layer)
        if finding.severity is Severity.ERROR and code not in _HARMLESS:
            self.mark_faulty(place)
        if len(self._findings) < MAX_FINDINGS:
            self._findings.append(finding)

    def mark_faulty(self, place: str) -> None:
        """Note an error at `place` for everything around it."""
        while place:
            self._faulty.add(place)
            place = place[: max(place.rfind("."), place.rfind("["), 0)]

    def faulty(self, place: str) -> bool:
        """Whether there is an error at `place` or inside it."""
        return place in self._faulty

    def found(self) -> tuple[Finding, ...]:
        return tuple(self._findings)


class Values:
    """Readers that note what does not fit and return a value that is safe to go on with."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def look_for_secrets(self, node: Node, place: str = "") -> None:
        """Note every string that looks like a key, without repeating it; and where every value stands."""
        start, end = node.span
        # Of an object or a list its opening mark is enough: nobody wants half a file underlined.
        self.notes.spans[place] = (start, end if node.members is None and node.items is None else min(start + 1, end))
        if isinstance(node.scalar, str) and looks_secret(node.scalar):
            self._secret(place, node.span)
        for number, item in enumerate(node.items or ()):
            self.look_for_secrets(item, f"{place}[{number}]")
        for member in node.members or ():
            inner = inside(place, member.key)
            if looks_secret(member.key):
                self._secret(inner, member.key_span)
            self.look_for_secrets(member.value, inner)

    def _secret(self, place: str, span: Span) -> None:
        message = f"{place or 'The policy'} looks like a key or a token. Policies are shared and must hold none."
        remedy = "Remove it, and replace it where it is in use. Clients hold keys; a policy names models only."
        self.notes.add("inline_secret", place, message, remedy, span)

    def fields(
        self, node: Node | None, place: str, known: tuple[str, ...], *, guards: bool = False
    ) -> dict[str, Node] | None:
        """The members of an object by key, None when it is none. With `guards`, what is wrong in it closes."""
        members = self.members(node, place, guards=guards)
        if node is None or node.members is None:
            return None
        found: dict[str, Node] = {}
        for member in members:
            if member.key in known:
                found[member.key] = member.value
            else:
                self._unknown(member, place, known, guards=guards)
        return found

    def members(self, node: Node | None, place: str, *, guards: bool = False) -> tuple[Member, ...]:
        if node is None:
            return ()
        if node.members is None:
            self._wrong_type(place, "an object", guards=guards)
            return ()
        return node.members

    def _unknown(self, member: Member, place: str, known: tuple[str, ...], *, guards: bool) -> None:
        meant = nearest(member.key, known)
        guarding = "" if place else nearest(member.key, _GUARDING, _ALIKE)
        if guards or guarding:
            self.notes.closed = True
        if meant:
            remedy = f'Did you mean "{meant}"?'
            self.notes.mark_faulty(f"{place}.{meant}".lstrip("."))
        elif guarding:
            remedy = f'"{guarding}" stands elsewhere; docs/policy.md shows where.'
        else:
            remedy = f"Known here: {', '.join(known)}."
        message = f"{shown(member.key)} is not a key of {place or 'a policy'}."
        self.notes.add("unknown_key", inside(place, member.key), message, remedy, member.key_span)

    def entries(self, node: Node | None, place: str, most: int, *, guards: bool = False) -> Iterator[tuple[str, Node]]:
        """Place and node of each entry of a list."""
        if node is None:
            return
        if node.items is None:
            self._wrong_type(place, "a list", guards=guards)
            return
        if len(node.items) > most:
            self.notes.closed |= guards
            message = f"{place} has {len(node.items):,} entries; at most {most:,} are read."
            self.notes.add("too_many", place, message, "Join entries, or drop some.")
        for number, item in enumerate(node.items[:most]):
            yield f"{place}[{number}]", item

    def text(self, node: Node | None, place: str, *, needed: bool = False, guards: bool = False) -> str:
        if node is None:
            if needed:
                owner, _, key = place.rpartition(".")
                self.notes.add("missing_key", place, f"{owner} has no {key!r}.", f'Add "{key}".')
            return ""
        if not isinstance(node.scalar, str):
            self._wrong_type(place, "a string", guards=guards)
            return ""
        longest = LONGEST_NAME if needed else LONGEST_TEXT
        if not node.scalar.strip() or len(node.scalar) > longest:
            self.notes.closed |= guards
            self.notes.add(
                "wrong_value", place, f"{place} is empty, or longer than {longest:,}.", "Write a short text."
            )
            return ""
        return node.scalar

    def flag(self, node: Node | None, place: str, *, guards: bool = False) -> bool | None:
        if node is None:
            return None
        if not isinstance(node.scalar, bool):
            self._wrong_type(place, "true or false", guards=guards)
            return None
        return node.scalar

    def whole(self, node: Node | None, place: str, low: int, high: int, default: int) -> int:
        if node is None:
            return default
        if isinstance(node.scalar, bool) or not isinstance(node.scalar, int):
            self._wrong_type(place, "a whole number")
            return default
        if not low <= node.scalar <= high:
            self.notes.add("wrong_value", place, f"{place} is {node.scalar}.", f"Write {low:,} to {high:,}.")
            return default
        return node.scalar

    def choice(self, node: Node | None, place: str, kind: type[S], *, guards: bool = False) -> S | None:
        if node is None:
            return None
        if not isinstance(node.scalar, str):
            self._wrong_type(place, "a string", guards=guards)
            return None
        if node.scalar not in tuple(kind):
            meant = nearest(node.scalar, kind)
            message = f"{place} can't be {shown(node.scalar)}."
            self.notes.closed |= guards
            remedy = f"Write one of {', '.join(kind)}." + (f' Did you mean "{meant}"?' if meant else "")
            self.notes.add("wrong_value", place, message, remedy)
            return None
        return kind(node.scalar)

    def capabilities(self, node: Node | None, place: str) -> tuple[Capability, ...] | None:
        if node is None:
            return None
        found = [self.choice(item, at, Capability) for at, item in self.entries(node, place, len(Capability))]
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def amount(self, node: Node | None, place: str) -> str:
        """US dollars as a plain decimal number."""
        if node is None:
            return ""
        value = node.scalar
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self._wrong_type(place, "a decimal number, as text")
            return ""
        text = value.strip() if isinstance(value, str) else format(Decimal(repr(value)), "f")
        if not _AMOUNT.fullmatch(text):
            message = f"{place} is no amount of US dollars."
            self.notes.add("bad_amount", place, message, 'Write a decimal number without sign and unit, as "0.25".')
            return ""
        return text

    def model(self, node: Node | None, place: str, *, needed: bool = False) -> str:
        name = self.text(node, place, needed=needed).strip()
        if name and not _MODEL.fullmatch(name):
            message = f"{place}: {shown(name)} does not name a provider and a model."
            self.notes.add("bad_model_name", place, message, "Write provider/model, as ollama/qwen2.5-coder:7b.")
            return ""
        if name:
            self.notes.models.append((name, place))
        return name

    def models(self, node: Node | None, place: str) -> tuple[str, ...]:
        names = [self.model(item, at) for at, item in self.entries(node, place, MAX_FALLBACKS)]
        return tuple(names)

    def check_fallbacks(self, model: str, fallbacks: tuple[str, ...], place: str) -> None:
        """Note a fallback that is the model itself, and one that was named before."""
        for number, name in enumerate(fallbacks):
            at = f"{place}[{number}]"
            if name.casefold() == model.casefold():
                message = f"{at}: {shown(name)} is its own fallback, which can't help when it fails."
                self.notes.add("self_fallback", at, message, "Name another model, or remove it.")
            elif name.casefold() in {each.casefold() for each in fallbacks[:number]}:
                message = f"{at}: {shown(name)} is named twice."
                self.notes.add("duplicate_fallback", at, message, "Remove the second one.")

    def globs(self, node: Node | None, place: str) -> tuple[str, ...]:
        """Patterns of a routing rule. One that is malformed stays, and matches nothing."""
        found: list[str] = []
        for at, item in self.entries(node, place, MAX_GLOBS):
            text = self.text(item, at)
            if text:
                found.append(text)
                self._check_glob(text, at)
        return tuple(found)

    def _check_glob(self, text: str, place: str) -> None:
        if glob_pattern(text) is not None:
            return
        message = f"{place}: the pattern {shown(text)} can't be understood and matches nothing."
        self.notes.add("invalid_glob", place, message, "Write it as in .gitignore, without an exception (!).")

    def privacy_globs(self, node: Node | None, place: str) -> tuple[str, ...]:
        """Patterns that restrict. One that is malformed stays, so that whoever compiles it closes."""
        found: list[str] = []
        for at, item in self.entries(node, place, MAX_GLOBS, guards=True):
            text = self.text(item, at, guards=True)
            if not text:
                continue
            found.append(text)
            if text.strip().startswith("!"):
                message = f"{at}: {shown(text)} makes an exception, which a list of privacy can't; it is ignored."
                self.notes.add("privacy_exception", at, message, "Name what is restricted instead.")
            elif glob_pattern(text) is None:
                message = f"{at}: the pattern {shown(text)} can't be understood, so every file counts as restricted."
                self.notes.add("invalid_privacy_glob", at, message, "Write it as in .gitignore.")
        return tuple(found)

    def _wrong_type(self, place: str, expected: str, *, guards: bool = False) -> None:
        self.notes.closed |= guards
        self.notes.add("wrong_type", place, f"{place or 'A policy'} must be {expected}.", f"Write {expected}.")
