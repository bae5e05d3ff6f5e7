"""What a row of the table of settings says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Scope(StrEnum):
    """Where settings come from, weakest first. A later layer wins, except that privacy lists only ever grow."""

    USER = "user"
    WORKSPACE = "workspace"
    REQUEST = "request"


ANYWHERE = (Scope.USER, Scope.WORKSPACE, Scope.REQUEST)
# What shapes the index cannot differ from one request to the next.
STANDING = (Scope.USER, Scope.WORKSPACE)


@dataclass(frozen=True, slots=True)
class Reader(Generic[T_co]):
    """Turns a raw value into a field's, or raises ValueError. `schema` says in JSON schema what editors offer and check
    while it is typed; it may be narrower than what is read, never wider in its bounds."""

    read: Callable[[object], T_co]
    schema: Mapping[str, object]

    def __call__(self, value: object) -> T_co:
        return self.read(value)


def reads(**schema: object) -> Callable[[Callable[[object], T_co]], Reader[T_co]]:
    """Makes a `Reader` of a function, with its schema as arguments."""
    return lambda read: Reader(read, schema)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. `name` comes after `haversack.`; `read` turns a raw value into the field's, or raises
    ValueError. `allowed` and `default` are what users read. `guarded`: not taken from an untrusted workspace."""

    name: str
    field: str
    read: Reader[object]
    default: str
    allowed: str
    scopes: tuple[Scope, ...]
    description: str
    effect: str
    guarded: bool = False
    hidden: bool = False  # a wrong value is not repeated in the problem: it may be a secret in the wrong place
