"""Numbers, positions and ranges of the protocol, which its messages are made of."""

from __future__ import annotations

from typing import NewType

import attrs

Uint = NewType("Uint", int)
"""LSP `uinteger`: 0 to 2^31 - 1."""

Share = NewType("Share", float)
"""A number from 0 to 1."""

# LSP 3.17, "Base Types": the range of `uinteger`.
MAX_UINT = 2**31 - 1


@attrs.frozen
class Position:
    line: Uint
    character: Uint


@attrs.frozen
class Range:
    start: Position
    end: Position
