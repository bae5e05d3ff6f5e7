"""Which documents a reader may have at all, whatever the model: privileged, strategy, and those of one tenant alone.

Decided by paths, before anything is read. What a pattern was meant to protect stays protected when the pattern
cannot be understood: it then counts for every document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from haversack import uris
from haversack.policy.origins import places
from haversack.policy.patterns import spell
from haversack.policy.privacy import Privacy
from haversack.types import Policy, Problem, Purpose, Reason, Request, Settings, Snapshot
from haversack_index.documents import RECORD, STRATEGY, Access

# Whose a document is that two tenants claim: no tenant has this name, so nobody gets it.
CONTESTED = "\0"


@dataclass(frozen=True, slots=True)
class DocumentGate:
    """The rules, and who reads. Paths are relative to a workspace folder; an origin is `folder/path`."""

    privileged: Privacy = field(default_factory=Privacy)
    strategy: Privacy = field(default_factory=Privacy)
    tenants: tuple[tuple[str, Privacy], ...] = ()
    tenant: str = ""
    viewing: bool = False
    folders: tuple[str, ...] = ()  # spelled keys, the longest first
    problems: tuple[Problem, ...] = ()
    # Origins that are links to documents which this reader may not have.
    otherwise: Mapping[str, Reason] = field(default_factory=dict[str, Reason], compare=False)

    @classmethod
    def compile(
        cls, policy: Policy, folders: Sequence[str] = (), tenant: str = "", purpose: Purpose = Purpose.AGENT
    ) -> DocumentGate:
        privileged, strategy = _paths(policy.privileged_paths), _paths(policy.strategy_paths)
        tenants = tuple((name, _paths(globs)) for name, globs in policy.tenants)
        lists = (privileged, strategy, *(paths for _, paths in tenants))
        n_bad = sum(paths.closed for paths in lists)
        return cls(
            privileged,
            strategy,
            tenants,
            tenant,
            purpose is Purpose.VIEW,
            tuple(sorted((spell(key) for key in folders), key=len, reverse=True)),
            (_not_understood(),) if n_bad else (),
        )

    @classmethod
    def of(cls, snapshot: Snapshot, request: Request | None = None) -> DocumentGate:
        """The snapshot's rules, for whoever asks."""
        keys = tuple(folder.key for folder in snapshot.folders)
        if request is None:
            return cls.compile(snapshot.policy, keys)
        purpose = request.document.purpose if request.document is not None else Purpose.AGENT
        scope = request.eligibility.tenant if request.eligibility is not None else ""
        return cls.compile(snapshot.policy, keys, request.tenant or scope, purpose)

    @property
    def active(self) -> bool:
        """Whether any document could be kept from anybody."""
        return self.privileged.active or self.strategy.active or bool(self.tenants)

    def is_privileged(self, path: str) -> bool:
        return self.privileged.restricts(_plain(path))

    def home(self, path: str) -> str:
        return STRATEGY if self.strategy.restricts(_plain(path)) else RECORD

    def owner(self, path: str) -> str:
        """The tenant whose alone the document is, "" when it is nobody's."""
        names = {name for name, paths in self.tenants if paths.restricts(_plain(path))}
        return CONTESTED if len(names) > 1 else next(iter(names), "")

    def hides(self, path: str) -> bool:
        """Whether the document is another tenant's: for this reader it does not exist."""
        return self.owner(path) not in ("", self.tenant)

    def reason(self, path: str) -> Reason | None:
        """Why this reader may not have the document; another tenant's is as good as outside the workspace."""
        if not self.active:
            return None
        if self.hides(path):
            return Reason.OUTSIDE
        if self.is_privileged(path):
            return Reason.PRIVILEGED
        return Reason.STRATEGY if self.home(path) == STRATEGY and not self.viewing else None

    def reason_of_origin(self, origin: str) -> Reason | None:
        """The same for an origin, however it is spelled."""
        if not self.active:
            return None
        if origin in self.otherwise:
            return self.otherwise[origin]
        return next(
            (reason for path in places(origin, self.folders) if (reason := self.reason(path)) is not None), None
        )

    def access(self) -> Access:
        """The same rules for the statements of the index."""
        return Access(self.is_privileged, self.home, self.owner, self.tenant, self.viewing)


def _paths(globs: Sequence[str]) -> Privacy:
    return Privacy.compile(Settings(restricted_paths=tuple(globs)))


def _plain(path: str) -> str:
    """A document outside every folder is called by its URI; patterns of names, not of places, can still mean it."""
    found = uris.to_path(path) if path.startswith("file:") else None
    return path if found is None else found.as_posix()


def _not_understood() -> Problem:
    return Problem(
        "documents",
        "document_pattern_invalid",
        "A pattern under `documents` of the policy can't be understood, so its rule counts for every document.",
        "Correct it in the policy file; its diagnostics say which one it is.",
    )
