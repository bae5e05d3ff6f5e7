"""The nouns of inline completion, in the order they are made. All frozen; sequences are tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from haversack.templates.fim import FimPrompt
from haversack.types import Block, Candidate, FileText, Manifest, Position, Problem, Route, Timing

if TYPE_CHECKING:
    from haversack.tokens import TokenCounter
    from haversack.workspace import Workspace

__all__ = ["Cursor", "FimBundle", "FimPrompt", "FimRequest", "Finder", "Found", "Place", "Ring"]


@dataclass(frozen=True, slots=True)
class FimRequest:
    """One place to complete at. Positions are code points (the LSP edge converts).

    The three token limits are None for those of the settings; `context_tokens` of 0 means: no other files.
    `policy` and `local_only` are as a `Request` has them.
    """

    uri: str
    position: Position
    model: str | None = None  # explicit `provider/model`
    prefix_tokens: int | None = None
    suffix_tokens: int | None = None
    context_tokens: int | None = None
    reply_tokens: int | None = None
    local_only: bool = False
    providers: tuple[str, ...] | None = None
    policy: Mapping[str, object] | None = None
    tenant: str = ""
    exclude: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a text. `line` may be `len(file.lines)`, with column 0: after the last line end.

    `file.folder` is "" for a document outside every folder; its path is the document's URI then.
    """

    uri: str
    file: FileText
    line: int
    column: int  # code points, never inside a character or between CR and LF
    language: str  # as the editor calls it, else by the file's name; "text" when nobody knows

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.file.lines[self.line][: self.column] if self.line < len(self.file.lines) else ""

    @property
    def line_after(self) -> str:
        """The cursor's line from the cursor on, with its end."""
        return self.file.lines[self.line][self.column :] if self.line < len(self.file.lines) else ""

    @property
    def text_before(self) -> str:
        """All of the text before the cursor. Costs the whole file: prefer lines near the cursor."""
        return "".join((*self.file.lines[: self.line], self.line_before))

    @property
    def text_after(self) -> str:
        return "".join((self.line_after, *self.file.lines[self.line + 1 :]))


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file that somebody lately edited or looked at; from 0, end exclusive."""

    folder: str
    path: str
    lines: tuple[int, int]
    edited: bool  # False: looked at


class Ring(Protocol):
    """The places lately edited and viewed, newest first. Holds places, never text."""

    def places(self) -> Sequence[Place]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """What other files have for a cursor, best first. Candidates are lines of files, with a `relevance` in 0..1.

    Sources: `symbols` for definitions of names and types of receivers, `edits` for the ring, `hybrid` for windows
    alike. Kinds: `symbol`, `edit`, `code`.
    """

    candidates: tuple[Candidate, ...] = ()
    problems: tuple[Problem, ...] = ()
    timings: tuple[Timing, ...] = ()


class Finder(Protocol):
    """Finds cross-file context: `fim.crossfile.find`. Blocks; runs on a reading thread.

    `most_tokens` is the room for all of it as `counter` counts; more candidates than fit may be given, few of them.
    """

    def __call__(
        self, cursor: Cursor, workspace: Workspace, ring: Ring | None, most_tokens: int, counter: TokenCounter
    ) -> Found: ...


@dataclass(frozen=True, slots=True)
class FimBundle:
    """The reply. `prefix` and `suffix` are cut at line borders and as the model may have them.

    `snippets` are the blocks of other files in the order of the prompt. `route.model` says which model, and whether
    it is `local`. `prompt.stops` and `prompt.form` say how to send it.
    """

    prefix: str
    suffix: str
    imports: str
    snippets: tuple[Block, ...]
    prompt: FimPrompt
    route: Route
    manifest: Manifest
    language: str = ""
    problems: tuple[Problem, ...] = field(default=())

    @property
    def stops(self) -> tuple[str, ...]:
        return self.prompt.stops

    @property
    def model(self) -> str:
        """`provider/model`."""
        return f"{self.route.model.provider}/{self.route.model.name}"

    @property
    def local(self) -> bool:
        return self.route.model.local
