"""Who owns the files in question and who changed them lately: CODEOWNERS and git."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

from haversack.places import Place
from haversack.types import Candidate, FileText, HaversackError, Kind, Plan, Source
from haversack.workspace import Workspace
from haversack_index.ignore import RuleList, parse_rules

CODEOWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
MOST_FILES = 12
MOST_AUTHORS = 4
# Commits looked at per file: who worked on it lately, not who ever did.
MOST_COMMITS = 50
SECONDS = 0.8
_ABOUT_PEOPLE = re.compile(
    # "Who calls this" asks about code.
    r"\b(?:who(?! (?:calls?|uses?|sets?|reads?|writes?|creates?|imports?|throws?|raises?|emits?|sends?|needs?)\b)"
    r"|whom|whose|owners?|owns?|owned|ownership|codeowners|maintainers?|authors?|blame|experts?|responsible|"
    r"reviewers?|teammates?|colleagues?|contributors?|(?:git|commit|change) history|history of|"
    r"(?:last|lately|recently) (?:changed|touched|edited|modified))\b",
    re.IGNORECASE,
)


def is_about_people(text: str) -> bool:
    return bool(_ABOUT_PEOPLE.search(text))


async def team(plan: Plan, workspace: Workspace) -> tuple[Candidate, ...]:
    places = await workspace.run(in_question, plan, workspace)
    found: list[Candidate] = []
    for folder in workspace.folders_in_play(plan.request.folder):
        paths = [place.path for place in places if place.folder == folder.key][:MOST_FILES] or [""]
        owners_file = await workspace.run(_owners_file, folder.key, workspace)
        owners = _owners(owners_file, paths)
        authors = await asyncio.gather(*(_authors(folder.key, path, workspace) for path in paths))
        lines = [
            f"{path or 'the whole folder'}: {'; '.join(filter(None, (owners.get(path, ''), lately)))}\n"
            for path, lately in zip(paths, authors, strict=True)
            if owners.get(path) or lately
        ]
        told = (*paths, *([owners_file.path] if owners and owners_file is not None else []))
        if lines:
            found.append(
                Candidate(
                    id=f"team:{folder.key}",
                    source=Source.KNOWLEDGE,
                    kind=Kind.TEAM,
                    title=f"People behind {folder.key}",
                    relevance=0.8,
                    parts=(("team", 0.8),),
                    why="the question is about people or history",
                    text="".join(lines),
                    origins=tuple(f"{folder.key}/{path}" for path in told if path),
                )
            )
    return tuple(found)


def in_question(plan: Plan, workspace: Workspace) -> list[Place]:
    """Files that the question or the editor points at."""
    names = [mention.value for mention in plan.mentions if mention.kind is None or mention.kind == "path"]
    names += plan.paths
    if plan.request.active is not None:
        names.append(plan.request.active.uri)
    places: dict[Place, None] = {}
    for name in names:
        try:
            places.update(dict.fromkeys(workspace.resolve(name, plan.request.folder)))
        except HaversackError:
            continue  # the mentions source tells the user
    return list(places)


def _owners_file(folder: str, workspace: Workspace) -> FileText | None:
    return next((file for name in CODEOWNERS if (file := workspace.read(folder, name)) is not None), None)


def _owners(file: FileText | None, paths: list[str]) -> dict[str, str]:
    if file is None:
        return {}
    owners: list[str] = []
    patterns: list[str] = []
    for line in file.lines:
        pattern, *names = line.split("#", 1)[0].split()[:20] or [""]
        # Sections and exceptions are not patterns; an empty line keeps the numbers of those after it.
        patterns.append("" if pattern.startswith(("[", "!")) else pattern)
        owners.append(" ".join(names))
    rules = parse_rules("\n".join(patterns).encode("utf-8", "replace"), "CODEOWNERS")
    owned = {path: _owner(path, rules, owners) for path in paths}
    return {path: f"owned by {names}" for path, names in owned.items() if names}


def _owner(path: str, rules: RuleList, owners: Sequence[str]) -> str:
    """The last rule that matches the file or a folder around it decides, also when it names nobody."""
    parts = path.encode("utf-8", "replace").split(b"/")
    around = ((b"/".join(parts[:n]), n < len(parts)) for n in range(1, len(parts) + 1))
    matched = [rule.line for place, is_folder in around if (rule := rules.match(place, is_folder)) is not None]
    return owners[max(matched) - 1] if matched else ""


async def _authors(folder: str, path: str, workspace: Workspace) -> str:
    where = ("--", f":(literal){path}") if path else ("--", ".")
    log = await workspace.git(folder, "log", f"-{MOST_COMMITS}", "--format=%an%x09%as", *where, seconds=SECONDS)
    entries = [line.split("\t") for line in log.split("\n") if "\t" in line]
    if not entries:
        return ""
    counts = Counter(entry[0] for entry in entries)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_AUTHORS]
    names = ", ".join(f"{name} ({count})" for name, count in ordered)
    return f"last {len(entries)} commits by {names}; latest {entries[0][1]}"
