"""What a newcomer reads first: README, manifest file, entry points; to build and test: guides and build files."""

from __future__ import annotations

import re

from haversack.gatherers.naming import file_flags, origin, question_words, title
from haversack.gatherers.outline import outline, shrinking, speaking_spans
from haversack.lines import merged
from haversack.types import Candidate, Detail, Form, Kind, Plan, Source
from haversack.workspace import Workspace

MANIFESTS = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json", "deno.json", "go.mod"),
        *("Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "mix.exs"),
        *("CMakeLists.txt", "Package.swift", "Makefile", "configure.ac"),
    }
)
_README = re.compile(r"readme(?:\.(?:md|rst|txt|adoc))?$", re.IGNORECASE)
_NOTES = re.compile(r"(?:docs?/)?(?:architecture|design|overview)[^/]*\.(?:md|rst|txt|adoc)$", re.IGNORECASE)
_ENTRY = re.compile(
    r"(?:[^/]+/){0,4}(?:__main__|main|index|app|cli|server|lib|mod)\.(?:py|js|mjs|ts|tsx|go|rs|java|kt|rb|php|c|cc|cpp|swift|cs|lua)$"
)
_TEST = re.compile(
    r"(?:^|/)(?:__tests__|tests?|specs?|examples?|playground|demos?|templates?|fixtures?|benchmarks?|docs?|vendor)/",
    re.IGNORECASE,
)
# Each kind of overview file with its relevance and how many of it are taken. A second README is that of some folder.
_KINDS = (("README", 1.0, 1), ("architecture notes", 0.95, 3), ("manifest file", 0.85, 3), ("entry point", 0.75, 5))
# Who asks how to build or test it reads these; a library's README tells how to use it, so it comes after the guides.
_GUIDE = re.compile(
    r"(?:\.github/|docs?/)?(?:contributing|development|developing|hacking|building|build|install|testing)"
    r"(?:\.(?:md|rst|txt|adoc))?$",
    re.IGNORECASE,
)
_TASKS = re.compile(
    r"(?:GNUm|m|M)akefile|[Jj]ustfile|tox\.ini|noxfile\.py|[Tt]askfile\.ya?ml|[Rr]akefile|Dockerfile|runtests?\.\w+"
)
_PIPELINE = re.compile(r"\.github/workflows/[^/]*(?:ci|test|build)[^/]*\.ya?ml$|\.gitlab-ci\.yml$")
_PRACTICAL_KINDS = (("guide", 1.0, 2), ("build file", 0.9, 4), ("README", 0.8, 1), ("pipeline", 0.6, 2))
# The head of a long README tells what the project is; the rest tells how to contribute.
HEAD_LINES = 60
OUTLINE_SYMBOLS = 30


def overview(folder: str, plan: Plan, workspace: Workspace) -> list[Candidate]:
    """Overview files of one folder, nearest to its top first."""
    index = workspace.indexes.get(folder)
    if index is None:
        return []
    paths = sorted((record.path for record in index.files()), key=lambda path: (path.count("/"), len(path), path))
    kinds, name_of = (_PRACTICAL_KINDS, _practical_kind_of) if plan.practical else (_KINDS, kind_of)
    by_kind: dict[str, list[str]] = {name: [] for name, _, _ in kinds}
    for path in paths:
        name = name_of(path)
        if name:
            by_kind[name].append(path)
    return [
        candidate
        for name, relevance, count in kinds
        for place, path in enumerate(by_kind[name][:count])
        if (candidate := _candidate(folder, path, (name, relevance - 0.02 * place), plan, workspace)) is not None
    ]


def kind_of(path: str) -> str:
    """Which kind of overview file a path is; "" for none."""
    name = path.rsplit("/", 1)[-1]
    depth = path.count("/")
    if _README.match(name) and depth <= 1:
        return "README"
    if _NOTES.match(path):
        return "architecture notes"
    if name in MANIFESTS and depth <= 1:
        return "manifest file"
    if _ENTRY.match(path) and not _TEST.search(path):
        return "entry point"
    return ""


def _practical_kind_of(path: str) -> str:
    """Which kind of file tells how to build and test a project; "" for none."""
    name, depth = path.rsplit("/", 1)[-1], path.count("/")
    if _GUIDE.match(path):
        return "guide"
    if depth == 0 and (_TASKS.fullmatch(name) or name in MANIFESTS):
        return "build file"
    if depth == 0 and _README.match(name):
        return "README"
    return "pipeline" if _PIPELINE.match(path) else ""


def _candidate(folder: str, path: str, kind: tuple[str, float], plan: Plan, workspace: Workspace) -> Candidate | None:
    file = workspace.read(folder, path)
    if file is None or not file.lines:
        return None
    name, relevance = kind
    n_lines = len(file.lines)
    asked = question_words(plan)
    lines = outline(workspace.symbols(folder, path), n_lines, asked, OUTLINE_SYMBOLS)
    spans = ((0, min(n_lines, HEAD_LINES)),)
    if plan.practical:
        # One command in a long guide is asked for, not what it says first.
        spans = merged(speaking_spans(workspace.parsed(folder, path).chunks, asked)) or spans
    return Candidate(
        id=f"overview:{origin(file)}",
        source=Source.HYBRID,
        kind=Kind.OVERVIEW,
        title=title(file, workspace),
        relevance=relevance,
        parts=((name, relevance),),
        why=f"{name}: tells how to build and test the project" if plan.practical else f"{name} of the project",
        file=file,
        forms=shrinking(
            Form(Detail.FULL, ((0, n_lines),)),
            Form(Detail.SPANS, spans),
            Form(Detail.OUTLINE, lines),
        ),
        origins=(origin(file),),
        file_rank=0,
        flags=file_flags(file),
    )
