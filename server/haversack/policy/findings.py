"""What is wrong with a policy: stable codes, and findings that point at their place."""

from __future__ import annotations

import bisect
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from haversack.policy.json_reader import NOWHERE, Span
from haversack.types import Position, Problem, Range
from haversack_index.text import split_lines


class Severity(IntEnum):
    """The numbers are those of the Language Server Protocol."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3


E, W, INFO = Severity.ERROR, Severity.WARNING, Severity.INFORMATION

# Every code with its severity. `docs/policy.md` explains each; a test compares the two.
CODES: Mapping[str, Severity] = {
    # The file as a whole: nothing of it is used, and everything counts as restricted.
    "unreadable": E,
    "outside_folder": E,
    "too_large": E,
    "too_deep": E,
    "syntax": E,
    "duplicate_key": E,
    "unknown_version": E,
    # One value of it.
    "missing_version": W,
    "unknown_key": E,
    "missing_key": E,
    "wrong_type": E,
    "wrong_value": E,
    "too_many": E,
    "inline_secret": E,
    # Globs and models.
    "invalid_glob": E,
    "invalid_privacy_glob": E,
    "privacy_exception": W,
    "bad_model_name": E,
    "unknown_provider": W,
    "unknown_model": W,
    "bad_amount": E,
    # Rules and routes.
    "duplicate_rule": E,
    "duplicate_model": W,
    "duplicate_fallback": W,
    "self_fallback": E,
    "ambiguous_rules": W,
    "rules_not_compared": INFO,
    "remote_in_local_rule": E,
    "remote_denied": W,
    "no_default_route": INFO,
    # Layers.
    "loosening": E,
    "not_trusted": W,
}

# A reply's problems name the first ones; `haversack policy` lists all.
MAX_PROBLEMS = 20
LONGEST_SHOWN = 80


NO_RANGE = Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True, slots=True)
class Finding:
    """`place` is the path of the value, as `rules[2].model`; `range` counts code points; `layer` says which file."""

    code: str
    message: str
    remedy: str
    place: str = ""
    range: Range = NO_RANGE
    layer: str = ""

    @property
    def severity(self) -> Severity:
        return CODES[self.code]


def problems_of(findings: Iterable[Finding]) -> tuple[Problem, ...]:
    """Errors and warnings as problems of a reply. Privacy patterns are left out: `Privacy` tells of each it meets."""
    told = [each for each in findings if each.severity < INFO and each.code not in _TOLD_BY_PRIVACY]
    told.sort(key=lambda each: each.severity)
    shown = tuple(Problem("policy", each.code, f"{each.layer}: {each.message}", each.remedy) for each in told)
    if len(shown) <= MAX_PROBLEMS:
        return shown
    more = Problem(
        "policy",
        "more_findings",
        f"The policy has {len(shown) - MAX_PROBLEMS:,} more findings.",
        "Run `haversack policy` to see all of them.",
    )
    return (*shown[:MAX_PROBLEMS], more)


_TOLD_BY_PRIVACY = frozenset({"invalid_privacy_glob", "privacy_exception"})


class Lines:
    """Offsets of a text as lines and columns, both in code points; lines end as the protocol says."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for line in split_lines(text):
            self._starts.append(self._starts[-1] + len(line))

    def range(self, span: Span) -> Range:
        return Range(self._position(span[0]), self._position(max(span)))

    def _position(self, offset: int) -> Position:
        line = bisect.bisect_right(self._starts, offset) - 1
        return Position(line, offset - self._starts[line])


def span_of(place: str, spans: Mapping[str, Span]) -> Span:
    """Where `place` is, or the nearest place around it that is there."""
    while place not in spans and place:
        place = place[: max(place.rfind("."), place.rfind("["), 0)]
    return spans.get(place, NOWHERE)


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """The known word that was most likely meant; "" when none is as near as that."""
    spelled = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower()[:LONGEST_SHOWN], list(spelled), 1, likeness)
    return spelled[found[0]] if found else ""


# --- secrets ------------------------------------------------------------------------------------------------------


def shown(text: str) -> str:
    """A value for a message: short, and not at all when it may be a secret."""
    if looks_secret(text):
        return "(not shown: it looks like a secret)"
    short = text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
    return repr(short)


def looks_secret(text: str) -> bool:
    """Whether a string looks like an API key, a token or a password: by its known beginning, or by its letters."""
    return _KNOWN_SECRET.search(text) is not None or any(_is_random(run) for run in _RUN.findall(text))


_KNOWN_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|(?:hf|gsk|r8|npm|pypi)[_-][A-Za-z0-9_]{20,}"
    r"|xai-[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY|\b[Bb]earer\s+[A-Za-z0-9._~+/=-]{12,}"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@]{1,100}:[^/\s@]{3,200}@"
)
_RUN = re.compile(r"[A-Za-z0-9_+=]{24,}")


def _is_random(run: str) -> bool:
    """Long runs of mixed letters and digits: names of models and files are shorter, or made of words of one case."""
    n_digits = sum(character.isdigit() for character in run)
    if re.fullmatch(r"[0-9a-fA-F]{32,}", run) and n_digits >= 4:
        return True
    mixed = run.lower() != run and run.upper() != run
    return mixed and n_digits >= 3 and len(set(run)) >= 12
