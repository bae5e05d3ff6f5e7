"""Which routing rule a turn falls under. Conditions of different kinds all hold, of several globs one is enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from haversack.policy.patterns import MAX_REMEMBERED, Pattern, Step, compile_pattern, spell, steps
from haversack.types import Intent, RoutingRule

# Compiled rules kept: a session has one list, and one more for each request that brings its own.
_MOST_KEPT = 8
# Globs screened by one expression: few enough that one hit does not mean trying hundreds.
_GROUP = 64


@dataclass(frozen=True, slots=True)
class Match:
    """The rule that won, and the path of the turn and the glob it is there for; both "" for a rule without paths."""

    rule: RoutingRule
    path: str = ""
    glob: str = ""

    @property
    def reason(self) -> str:
        """What of the turn met the rule, as a person reads it."""
        held = [f"the task is {self.rule.intent.value}"] if self.rule.intent is not None else []
        held += [f"{self.path} is in {self.glob}"] if self.path else []
        return " and ".join(held) or "it takes every request"


def match(rules: Sequence[RoutingRule], intent: Intent, paths: Iterable[str]) -> Match | None:
    """The first rule that matches, by priority, then by how much it asks (paths and intent, paths, intent, nothing),
    then in the order given. `paths` are relative to their workspace folders."""
    turn = tuple(paths)
    compiled = _compiled(tuple(rules))
    won = compiled.first(intent, turn)
    if won is None:
        return None
    rule, path = compiled.rules[won], compiled.first_path(won, turn)
    return Match(rule, path, _glob_for(rule, path)) if path else Match(rule)


def specificity(rule: RoutingRule) -> int:
    """How much a rule asks; of two with one priority the higher goes first."""
    return 2 * bool(rule.paths) + (rule.intent is not None)


def glob_pattern(glob: str) -> Pattern | None:
    """A rule's glob; None for one that matches nothing: a malformed one, a comment, an exception."""
    line = glob.strip()
    return None if not line or line.startswith(("#", "!")) else compile_pattern(line)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """`rules` are in the order they are tried. A set of rules is the bits of a number: bit 0 is the first rule.

    `anchored` globs are found by the directories they begin with, and these and `names` by what they end with, so that
    a path meets hardly more than those it can match.
    """

    given: tuple[RoutingRule, ...]
    rules: tuple[RoutingRule, ...]
    for_intent: dict[Intent, int]
    pathless: int
    anchored: dict[bytes, _ByTail]
    names: _ByTail
    tails: frozenset[bytes]
    _paths: dict[str, int] = field(default_factory=dict[str, int])
    _directories: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def first(self, intent: Intent, paths: Iterable[str]) -> int | None:
        """The place of the first rule that holds."""
        matched = self.pathless
        known = self._paths
        for path in paths:
            rules = known.get(path)
            matched |= self._look(path) if rules is None else rules
        matched &= self.for_intent[intent]
        return (matched & -matched).bit_length() - 1 if matched else None

    def first_path(self, place: int, paths: Iterable[str]) -> str:
        """The first path that the rule at this place has a glob for; "" for a rule without paths."""
        bit = 1 << place
        known = self._paths
        for path in paths if not self.pathless & bit else ():
            rules = known.get(path)
            if (self._look(path) if rules is None else rules) & bit:
                return path
        return ""

    def _look(self, path: str) -> int:
        if len(self._paths) >= MAX_REMEMBERED:
            self._paths.clear()
        if len(self._directories) >= MAX_REMEMBERED:
            self._directories.clear()
        rules = 0
        for step in steps(spell(path)):
            if not step.is_directory:
                rules |= self._of(step)
                continue
            known = self._directories.get(step.whole)
            if known is None:
                known = self._directories[step.whole] = self._of(step)
            rules |= known
        self._paths[path] = rules
        return rules

    def _of(self, step: Step) -> int:
        """The rules with a glob for this very path or directory."""
        name, tails = step.name, self.tails
        ends = [end for at in range(len(name) + 1) if (end := name[at:]) in tails]
        rules = 0
        for end in ends:
            for group in self.names.get(end, ()):
                rules |= group.rules(name, step)
        head = step.whole
        while head:
            head = head.rpartition(b"/")[0]
            by_tail = self.anchored.get(head)
            if by_tail is not None:
                for end in ends:
                    for group in by_tail.get(end, ()):
                        rules |= group.rules(step.whole, step)
        return rules


@dataclass(frozen=True, slots=True)
class _Group:
    """A handful of globs and the rules that have them. `screen` says in one match whether any can hold."""

    screen: re.Pattern[bytes]
    globs: tuple[tuple[Pattern, int], ...]

    def rules(self, text: bytes, step: Step) -> int:
        found = 0
        if self.screen.match(text) is not None:
            for pattern, bits in self.globs:
                if pattern.matches(step):
                    found |= bits
        return found


_ByTail = Mapping[bytes, tuple[_Group, ...]]

_kept: tuple[_Compiled, ...] = ()


def _compiled(rules: tuple[RoutingRule, ...]) -> _Compiled:
    """Kept by value. Comparing lists of the same rules costs nothing; hashing a thousand rules costs milliseconds."""
    global _kept  # noqa: PLW0603 - replaced whole, so that threads see the old one or the new one
    for compiled in _kept:
        if compiled.given == rules:
            return compiled
    compiled = _compile(rules)
    _kept = (compiled, *_kept[: _MOST_KEPT - 1])
    return compiled


def _compile(given: tuple[RoutingRule, ...]) -> _Compiled:
    ordered = tuple(sorted(given, key=lambda rule: (rule.priority, -specificity(rule))))
    for_intent = dict.fromkeys(Intent, 0)
    pathless = 0
    globs: dict[str, int] = {}
    for at, rule in enumerate(ordered):
        bit = 1 << at
        for intent in Intent if rule.intent is None else (rule.intent,):
            for_intent[intent] |= bit
        if not rule.paths:
            pathless |= bit
        for glob in rule.paths:
            globs[glob] = globs.get(glob, 0) | bit
    anchored: dict[bytes, list[tuple[Pattern, int]]] = {}
    names: list[tuple[Pattern, int]] = []
    tails: set[bytes] = set()
    for glob, bits in globs.items():
        pattern = glob_pattern(glob)
        if pattern is not None:
            tails.add(pattern.tail)
            (anchored.setdefault(pattern.head, []) if pattern.anchored else names).append((pattern, bits))
    groups = {head: _by_tail(patterns) for head, patterns in anchored.items()}
    return _Compiled(given, ordered, for_intent, pathless, groups, _by_tail(names), frozenset(tails))


def _by_tail(globs: Iterable[tuple[Pattern, int]]) -> _ByTail:
    found: dict[bytes, list[tuple[Pattern, int]]] = {}
    for pattern, bits in globs:
        found.setdefault(pattern.tail, []).append((pattern, bits))
    return {tail: _grouped(patterns) for tail, patterns in found.items()}


def _grouped(globs: Sequence[tuple[Pattern, int]]) -> tuple[_Group, ...]:
    chunks = [tuple(globs[at : at + _GROUP]) for at in range(0, len(globs), _GROUP)]
    return tuple(
        _Group(re.compile(b"|".join(b"(?:%s)" % each.expression.pattern for each, _ in chunk), re.DOTALL), chunk)
        for chunk in chunks
    )


def _glob_for(rule: RoutingRule, path: str) -> str:
    """The rule's first glob that matches the path."""
    taken = tuple(steps(spell(path)))
    patterns = ((glob, glob_pattern(glob)) for glob in rule.paths)
    return next(glob for glob, each in patterns if each is not None and any(map(each.matches, taken)))
