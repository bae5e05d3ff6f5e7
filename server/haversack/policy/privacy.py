"""Which files no remote model may read, decided by their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from haversack.policy.findings import shown
from haversack.policy.origins import places
from haversack.policy.patterns import MAX_REMEMBERED, Pattern, compile_pattern, spell, steps
from haversack.types import Policy, Problem, Settings

NO_POLICY = Policy()


def private_patterns(settings: Settings, policy: Policy) -> tuple[str, ...]:
    """Every pattern that keeps files from remote models: both lists of the settings and of the policy, and the paths
    that the policy leaves to local models."""
    kept_local = (path for rule in policy.rules if rule.local_only for path in rule.paths)
    lists = (settings.restricted_paths, settings.remote_blocked_paths, policy.restricted_paths, policy.blocked_paths)
    return tuple(dict.fromkeys((*(text for each in lists for text in each), *kept_local)))


# The origin of text that was restricted when it was served, by whatever rule: it stays so, also where no path says why.
UNNAMED_ORIGIN = "?"


@dataclass(frozen=True, slots=True)
class Privacy:
    """Compiled privacy settings. With `closed`, a pattern could not be understood, so everything is restricted."""

    patterns: tuple[Pattern, ...] = ()
    closed: bool = False
    problems: tuple[Problem, ...] = ()
    folders: tuple[str, ...] = ()
    # Origins whose text is that of a restricted file under another name: a link to it, a copy of it.
    known_otherwise: frozenset[str] = frozenset()
    _known: dict[str, bool] = field(default_factory=dict[str, bool], compare=False, repr=False)

    @classmethod
    def compile(cls, settings: Settings, folders: Sequence[str] = (), policy: Policy = NO_POLICY) -> Privacy:
        """From the lists of the settings and of the policy. `folders`: keys of workspace folders."""
        patterns: list[Pattern] = []
        problems: list[Problem] = []
        closed = policy.closed
        for text in private_patterns(settings, policy):
            line = text.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("!"):
                problems.append(_no_exceptions(text))
                continue
            pattern = compile_pattern(line)
            if pattern is None:
                closed = True
                problems.append(_not_understood(text))
            else:
                patterns.append(pattern)
        # The longest key first: `api/v2` must not be read as folder `api` and path `v2/…`.
        keys = tuple(sorted((spell(key) for key in folders), key=len, reverse=True))
        return cls(tuple(patterns), closed, tuple(problems), keys)

    @property
    def active(self) -> bool:
        """Whether anything at all may be restricted."""
        return self.closed or bool(self.patterns)

    def restricts(self, path: str) -> bool:
        """Whether the file at `path`, relative to its workspace folder, is restricted."""
        if self.closed:
            return True
        if not self.patterns:
            return False
        known = self._known.get(path)
        if known is None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = self._known[path] = self._matches(spell(path))
        return known

    def restricts_origin(self, origin: str) -> bool:
        """The same for an origin, `folder/path`, however it is spelled: every reading of it counts."""
        if origin == UNNAMED_ORIGIN or origin in self.known_otherwise:
            return True
        if self.closed or not self.patterns:
            return self.closed
        return any(self.restricts(path) for path in places(origin, self.folders))

    def _matches(self, path: str) -> bool:
        return any(pattern.matches(step) for step in steps(path) for pattern in self.patterns)


def _not_understood(text: str) -> Problem:
    return Problem(
        "privacy",
        "privacy_pattern_invalid",
        f"The privacy pattern {shown(text)} can't be understood, so every file counts as restricted.",
        "Correct it in haversack.privacy.restrictedPaths, haversack.privacy.remote.blockedPaths or the policy.",
    )


def _no_exceptions(text: str) -> Problem:
    return Problem(
        "privacy",
        "privacy_pattern_ignored",
        f"The privacy pattern {shown(text)} makes an exception, which privacy lists can't; it is ignored.",
        "Name what is restricted instead.",
    )
