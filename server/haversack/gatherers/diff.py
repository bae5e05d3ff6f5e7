"""What changed since the last commit, one candidate per file: `git diff HEAD` of the working tree, and new files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from haversack.gatherers.changed import changed_definitions
from haversack.policy import catalogue
from haversack.policy.rules import match
from haversack.policy.turn import inside_folder, turn_paths
from haversack.types import Candidate, Intent, Kind, MentionKind, Plan, Problem, Source
from haversack.workspace import Workspace
from haversack_index.types import SkipReason

# A commit's worth of files; a formatter's run over a whole project is not a question anybody can read.
MOST_FILES = 50
# Characters of one file's diff: some 2,000 lines; more is a generated file or a move.
LONGEST = 80_000
# A diff that was asked for must be in the prompt; it leaves this part of the budget to what it is about.
REQUIRED_SHARE = 0.75
# What a file's diff needs to say anything, and what its heading and fence take besides, in characters.
LEAST, FRAME = 400, 100
# Diffs of code take 2.6 to 3.5 characters a token; the low end keeps what must be in from not fitting.
CHARACTERS_PER_TOKEN = 2.5
SECONDS = 1.2
_ABOUT_CHANGES = re.compile(
    r"\b(?:diff|uncommitted|unstaged|staged|commit message|(?:my|these|the|recent|last|latest|local|current) changes|"
    r"what (?:did i|have i|i) changed?|changed files|work(?:ing)? (?:tree|copy)|pull request|merge request)\b",
    re.IGNORECASE,
)
# Options that keep the output plain and run no program that the repository names.
_PLAIN = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_ESCAPES = dict(
    zip('"\\\a\b\f\n\r\t\v\x7f', ('\\"', "\\\\", *(f"\\{each}" for each in "abfnrtv"), "\\177"), strict=True)
)
_REST = "(and {} more lines of this diff are left out)\n"
_KEPT_BACK = frozenset({SkipReason.SECRET_NAME, SkipReason.HAVERSACK_IGNORED})


def is_about_changes(plan: Plan) -> bool:
    """Whether the question speaks of the changes at hand."""
    return plan.changes or plan.intent is Intent.REVIEW or bool(_ABOUT_CHANGES.search(plan.request.text))


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    asked = any(mention.kind is MentionKind.DIFF for mention in plan.mentions)
    if not asked and not is_about_changes(plan):
        return (), ()
    folders = workspace.folders_in_play(plan.request.folder)
    results = await asyncio.gather(*(_of_folder(folder.key, asked, workspace) for folder in folders))
    candidates = tuple(candidate for found, _ in results for candidate in found)
    around: list[Candidate] = []
    if asked or plan.changes:
        texts = {candidate.origins[0]: candidate.text for candidate in candidates}
        for folder in folders:
            around += await workspace.run(changed_definitions, folder.key, texts, plan, workspace)
    problems = tuple(problem for _, some in results for problem in some)
    if asked:
        candidates, cut = _within(_room(plan, candidates, workspace), candidates)
        problems += cut
    if (asked or plan.changes) and not candidates:
        message = (
            "There are no changes against the last commit, the folder is no git repository, or git is not installed."
        )
        problems += (_problem("no_diff", message),)
    return (*candidates, *around), problems


async def _of_folder(folder: str, asked: bool, workspace: Workspace) -> tuple[list[Candidate], list[Problem]]:
    # The names come by themselves with -z, so that no quoting can be misread; `--relative` keeps to this folder.
    listing = await workspace.git(folder, "diff", "HEAD", "--relative", "--name-only", "-z", *_PLAIN, seconds=SECONDS)
    untracked = await workspace.git(folder, "ls-files", "--others", "--exclude-standard", "-z", seconds=SECONDS)
    changed = [path for path in listing.split("\0") if path]
    new = [path for path in untracked.split("\0") if path]
    problems: list[Problem] = []
    paths = await workspace.run(_shown, folder, (*changed, *new), workspace)
    n_changed = len(changed) + len(new)
    if len(paths) == MOST_FILES < n_changed:
        problems.append(_problem("diff_capped", f"{n_changed:,} files changed; the first {MOST_FILES} were taken."))
    known = frozenset(changed)
    tracked = [path for path in paths if path in known]
    output = ""
    if tracked:
        literal = [f":(literal){path}" for path in tracked]
        output = await workspace.git(folder, "diff", "HEAD", "--relative", *_PLAIN, "--", *literal, seconds=SECONDS)
    pieces = [f"diff --git {piece}" for piece in re.split(r"^diff --git ", output, flags=re.MULTILINE)[1:]]
    texts = _matched(tracked, pieces)
    for path in paths:
        if path not in texts:
            file = await workspace.run(workspace.read, folder, path)
            if file is not None and path not in known:
                texts[path] = f"new file {path}, not yet added\n" + "".join(f"+{line}" for line in file.lines)
    found = [_candidate(folder, path, texts[path], asked, rank) for rank, path in enumerate(paths) if path in texts]
    return found, problems


def _room(plan: Plan, candidates: Iterable[Candidate], workspace: Workspace) -> int:
    """Characters of a diff that must be in the prompt: most of the budget of the model that comes first."""
    budget = plan.request.budget_tokens
    if budget is None:
        settings, declared = workspace.snapshot.settings, workspace.snapshot.policy.models
        budget = catalogue.resolve(_first_model(plan, candidates, workspace), settings, declared).gather_budget
    return int(budget * REQUIRED_SHARE * CHARACTERS_PER_TOKEN)


def _first_model(plan: Plan, candidates: Iterable[Candidate], workspace: Workspace) -> str:
    """Who is asked first, as far as that is known before everything is gathered."""
    snapshot = workspace.snapshot
    policy, settings = snapshot.policy, snapshot.settings
    if plan.request.model:
        return plan.request.model
    if policy.rules:
        changed = tuple(inside_folder(candidate.origins[0], snapshot) for candidate in candidates)
        found = match(policy.rules, plan.intent, (*turn_paths(plan, (), snapshot), *changed))
        if found is not None:
            return found.rule.model
    named = policy.default.model if policy.default is not None else settings.model
    return named or catalogue.load().default_model


def _within(room: int, candidates: tuple[Candidate, ...]) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    """The diffs, the longest cut so that all together keep to `room` characters; a refusal would help nobody.

    When there is not even room for the head of each, the last ones are no longer a must.
    """
    n_required = max(1, room // LEAST)
    required, others = candidates[:n_required], candidates[n_required:]
    limit, left = LONGEST, room - FRAME * len(required)
    waiting = sorted(len(each.text) for each in required)
    for place, length in enumerate(waiting):
        share = left // (len(waiting) - place)
        if length > share:
            limit = share
            break
        left -= length
    shown = tuple(replace(each, text=_cut(each.text, limit)) for each in required)
    n_cut = sum(len(new.text) < len(old.text) for new, old in zip(shown, required, strict=True))
    if not n_cut and not others:
        return candidates, ()
    message = (
        f"Of {len(candidates)} changed files {n_cut} were cut and {len(others)} may be left out to fit the budget."
    )
    problem = _problem("diff_cut", message, "Raise the budget, or name the files that matter.")
    return (*shown, *(replace(each, required=False) for each in others)), (problem,)


def _cut(text: str, limit: int) -> str:
    """The first lines of a diff, with a last line that tells how many are missing."""
    if len(text) <= limit:
        return text
    kept = text[: max(0, limit - len(_REST))].rsplit("\n", 1)[0]
    return f"{kept}\n{_REST.format(text.count(chr(10)) - kept.count(chr(10)) - 1)}"


def _matched(paths: list[str], pieces: list[str]) -> dict[str, str]:
    """Pieces to paths by their whole header: a piece that is credited to another file would take its privacy."""
    wanted = {f"diff --git a/{path} b/{path}": path for path in paths}
    wanted |= {f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}": path for path in paths}
    found: dict[str, str] = {}
    for piece in pieces:
        path = wanted.get(piece.split("\n", 1)[0])
        if path is not None:
            found[path] = found.get(path, "") + piece  # a file that became a link has two
    return found


def _quoted(name: str) -> str:
    """A name as git writes it when it has quotes, backslashes or control characters in it."""
    written = "".join(_ESCAPES.get(letter) or (f"\\{ord(letter):03o}" if letter < " " else letter) for letter in name)
    return f'"{written}"'


def _shown(folder: str, paths: Iterable[str], workspace: Workspace) -> list[str]:
    """The first of these paths that may be shown, as many as are taken: the others need not be looked at."""
    verdicts = ((path, workspace.verdict(folder, path)) for path in paths)
    known = (path for path, verdict in verdicts if verdict is None or verdict.reason not in _KEPT_BACK)
    allowed = (path for path in known if not workspace.hides(folder, path))
    return list(islice(allowed, MOST_FILES))


def _candidate(folder: str, path: str, text: str, asked: bool, rank: int) -> Candidate:
    relevance = 1.0 if asked else max(0.3, 0.8 - 0.02 * rank)
    return Candidate(
        id=f"diff:{folder}/{path}",
        source=Source.DIFF,
        kind=Kind.DIFF,
        title=f"Changes in {path}",
        relevance=relevance,
        parts=(("diff", relevance),),
        why="you asked for the diff" if asked else "changed since the last commit, and you ask about changes",
        required=asked,
        text=_cut(text if text.endswith("\n") else text + "\n", LONGEST),
        origins=(f"{folder}/{path}",),
        file_rank=rank,
    )


def _problem(code: str, message: str, remedy: str = "") -> Problem:
    return Problem(Source.DIFF.value, code, message, remedy)
