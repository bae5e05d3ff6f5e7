"""What sources of things a user points at have in common: candidates, refusals, and the forms of a whole file."""

from __future__ import annotations

from dataclasses import dataclass, field

from haversack.gatherers.naming import file_flags, lines_id, origin, question_words, title
from haversack.gatherers.outline import outline, shrinking, speaking_spans
from haversack.lines import merged
from haversack.places import Place
from haversack.types import Candidate, Detail, FileText, Form, Kind, Plan, Problem, Reason, Source
from haversack.workspace import Workspace
from haversack_index.types import SkipReason

# Two screens of signatures: what is left of a file when nothing else of it fits.
OUTLINE_SYMBOLS = 60
# What the ids of open documents begin with; the name of the file follows.
ACTIVE = "active:"
# A mention that names nothing heads its row with this much of itself: longer is pasted text behind an `@`.
LONGEST_NAME = 200
# What a person may name although the walk leaves it out: naming it is the permission. Ignored files, secrets,
# dependency folders and what is not text stay out.
_NAMED_ANYWAY = frozenset(
    {SkipReason.HIDDEN, SkipReason.GENERATED, SkipReason.MINIFIED, SkipReason.LOCK_FILE, SkipReason.GONE}
)


@dataclass(slots=True)
class Pointed:
    """What was found so far. `whole_files` are the origins of files that were named without a line range."""

    candidates: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    problems: list[Problem] = field(default_factory=list[Problem])
    whole_files: set[str] = field(default_factory=set[str])

    def add(self, *candidates: Candidate) -> None:
        for candidate in candidates:
            self.candidates.setdefault(candidate.id, candidate)

    def take(self, other: Pointed) -> None:
        """Adds all that was found elsewhere; a file that is named whole need not stand there as the open one too."""
        self.add(*other.candidates.values())
        self.problems += other.problems
        self.whole_files |= other.whole_files
        for name in self.whole_files:
            self.candidates.pop(f"{ACTIVE}{name}", None)

    def problem(self, code: str, message: str, remedy: str = "") -> None:
        self.problems.append(Problem(Source.MENTIONS.value, code, message, remedy))

    def refuse(self, name: str, reason: Reason, why: str, place: Place | None = None) -> None:
        """A row for what was pointed at and cannot be served; it carries no text."""
        where = f"{place.folder}/{place.path}" if place is not None else name[:LONGEST_NAME]
        file = FileText(place.folder, place.path, (), "", "") if place is not None else None
        self.add(
            Candidate(
                id=f"refused:{where}",
                source=Source.MENTIONS,
                kind=Kind.FILE,
                title=place.path if place is not None else where,
                relevance=1.0,
                parts=(("mention", 1.0),),
                why=why,
                file=file,
                forms=(Form(Detail.FULL, ()),) if file is not None else (),
                origins=(where,) if place is not None else (),
                refused=(reason,),
            )
        )


def lines_candidate(
    prefix: str, kind: Kind, file: FileText, lines: tuple[int, int], *, why: str, workspace: Workspace
) -> Candidate:
    """A required candidate of whole lines that the user chose."""
    return Candidate(
        id=lines_id(prefix, file, *lines),
        source=Source.MENTIONS,
        kind=kind,
        title=title(file, workspace),
        relevance=1.0,
        parts=((prefix, 1.0),),
        why=why,
        required=True,
        file=file,
        forms=(Form(Detail.FULL, (lines,)),),
        origins=(origin(file),),
        file_rank=0,
        flags=file_flags(file),
    )


def file_forms(file: FileText, plan: Plan, workspace: Workspace, at: int | None) -> tuple[Form, ...]:
    """The file whole; what of it speaks of the question with an outline of the rest; the outline alone."""
    asked_words = question_words(plan)
    parsed = workspace.parsed(file.folder, file.path)
    n_lines = len(file.lines)
    around = ((at, at + 1),) if at is not None else ()
    lines = outline(parsed.symbols, n_lines, asked_words, OUTLINE_SYMBOLS, around)
    spans = speaking_spans(parsed.chunks, asked_words, at) or outline((), n_lines, asked_words, 0)
    forms = shrinking(
        Form(Detail.FULL, ((0, n_lines),)), Form(Detail.SPANS, merged((*spans, *lines))), Form(Detail.OUTLINE, lines)
    )
    return forms or (Form(Detail.FULL, ((0, n_lines),)),)


def refusal(place: Place, workspace: Workspace) -> str:
    """Why a file may not be read although it was named or is open; "" when it may."""
    withheld = workspace.withholds(place.folder, place.path)
    if withheld is not None:
        return f"it is a {withheld.value}"
    if not place.folder:
        return ""
    skipped = workspace.verdict(place.folder, place.path)
    if skipped is None or skipped.reason in _NAMED_ANYWAY:
        return ""
    rule = f" by the rule {skipped.rule!r}" if skipped.rule else ""
    return f"it is {skipped.reason.value}{rule}"


def row_reason(place: Place, workspace: Workspace) -> Reason:
    """What the manifest says of something that `refusal` or `unreadable` had a reason against."""
    return workspace.withholds(place.folder, place.path) or Reason.UNREADABLE


def unreadable(place: Place, workspace: Workspace) -> str:
    reason = workspace.why_not(place.folder, place.path)
    return f"it is {reason.value}" if reason is not None else "it holds no text"
