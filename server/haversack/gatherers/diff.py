"""What changed since the last commit, one candidate per file: `git diff HEAD` of the working tree, and new files."""

from __future__ import annotations

import asyncio
import re

from haversack.types import Candidate, Intent, Kind, MentionKind, Plan, Problem, Source
from haversack.workspace import Workspace
from haversack_index.types import SkipReason

# A commit's worth of files; a formatter's run over a whole project is not a question anybody can read.
MOST_FILES = 50
# Characters of one file's diff: some 2,000 lines; more is a generated file or a move.
LONGEST = 80_000
SECONDS = 1.2
_ABOUT_CHANGES = re.compile(
    r"\b(?:diff|uncommitted|unstaged|staged|commit message|(?:my|these|the|recent|last|latest|local|current) changes|"
    r"what (?:did i|have i|i) changed?|changed files|work(?:ing)? (?:tree|copy)|pull request|merge request)\b",
    re.IGNORECASE,
)
# Options that keep the output plain and run no program that the repository names.
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/")
_KEPT_BACK = frozenset({SkipReason.SECRET_NAME, SkipReason.HAVERSACK_IGNORED})


def is_about_changes(plan: Plan) -> bool:
    """Whether the question speaks of the changes at hand."""
    return plan.intent is Intent.REVIEW or bool(_ABOUT_CHANGES.search(plan.request.text))


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    asked = any(mention.kind is MentionKind.DIFF for mention in plan.mentions)
    if not asked and not is_about_changes(plan):
        return (), ()
    folders = workspace.folders_in_play(plan.request.folder)
    results = await asyncio.gather(*(_of_folder(folder.key, asked, workspace) for folder in folders))
    candidates = tuple(candidate for found, _ in results for candidate in found)
    problems = tuple(problem for _, some in results for problem in some)
    if asked and not candidates:
        message = "There are no changes against the last commit, or the folder is not a git repository."
        problems += (_problem("no_diff", message),)
    return candidates, problems


async def _of_folder(folder: str, asked: bool, workspace: Workspace) -> tuple[list[Candidate], list[Problem]]:
    # The names come by themselves with -z, so that no quoting can be misread; `--relative` keeps to this folder.
    listing = await workspace.git(folder, "diff", "HEAD", "--relative", "--name-only", "-z", *_PLAIN, seconds=SECONDS)
    untracked = await workspace.git(folder, "ls-files", "--others", "--exclude-standard", "-z", seconds=SECONDS)
    changed = [path for path in listing.split("\0") if path]
    new = [path for path in untracked.split("\0") if path]
    problems: list[Problem] = []
    paths = [path for path in (*changed, *new) if not _kept_back(folder, path, workspace)]
    if len(paths) > MOST_FILES:
        problems.append(_problem("diff_capped", f"{len(paths)} files changed; the first {MOST_FILES} were taken."))
    paths = paths[:MOST_FILES]
    tracked = [path for path in paths if path in set(changed)]
    output = ""
    if tracked:
        literal = [f":(literal){path}" for path in tracked]
        output = await workspace.git(folder, "diff", "HEAD", "--relative", *_PLAIN, "--", *literal, seconds=SECONDS)
    pieces = [f"diff --git {piece}" for piece in re.split(r"^diff --git ", output, flags=re.MULTILINE)[1:]]
    texts = dict(zip(tracked, pieces, strict=True)) if len(pieces) == len(tracked) else _matched(tracked, pieces)
    for path in paths:
        if path not in texts:
            file = await workspace.run(workspace.read, folder, path)
            if file is not None and path not in set(changed):
                texts[path] = f"new file {path}, not yet added\n" + "".join(f"+{line}" for line in file.lines)
    found = [_candidate(folder, path, texts[path], asked, rank) for rank, path in enumerate(paths) if path in texts]
    return found, problems


def _matched(paths: list[str], pieces: list[str]) -> dict[str, str]:
    """Pieces to paths by their header, where the tree changed between the two commands."""
    found: dict[str, str] = {}
    for piece in pieces:
        head = piece.split("\n", 1)[0]
        path = next((path for path in paths if head.endswith((f" b/{path}", f' "b/{path}"'))), None)
        if path is not None:
            found[path] = piece
    return found


def _kept_back(folder: str, path: str, workspace: Workspace) -> bool:
    verdict = workspace.verdict(folder, path)
    return verdict is not None and verdict.reason in _KEPT_BACK


def _candidate(folder: str, path: str, text: str, asked: bool, rank: int) -> Candidate:
    relevance = 1.0 if asked else max(0.3, 0.8 - 0.02 * rank)
    if len(text) > LONGEST:
        text = text[:LONGEST].rsplit("\n", 1)[0] + "\n(the rest of this diff is left out)\n"
    return Candidate(
        id=f"diff:{folder}/{path}",
        source=Source.DIFF,
        kind=Kind.DIFF,
        title=f"Changes in {path}",
        relevance=relevance,
        parts=(("diff", relevance),),
        why="you asked for the diff" if asked else "changed since the last commit, and you ask about changes",
        required=asked,
        text=text if text.endswith("\n") else text + "\n",
        origins=(f"{folder}/{path}",),
        file_rank=rank,
    )


def _problem(code: str, message: str) -> Problem:
    return Problem(Source.DIFF.value, code, message)
