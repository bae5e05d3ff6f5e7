"""What a row of the table of settings says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


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
