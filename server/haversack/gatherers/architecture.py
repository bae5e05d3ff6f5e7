"""A short portrait of a project, kept per state of its index: languages, frameworks, entry points, layers, hubs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from haversack.gatherers.overview import MANIFESTS, kind_of
from haversack.index_view import Index
from haversack.policy.privacy import Privacy, private_patterns
from haversack.types import Candidate, Kind, Plan, Source
from haversack.workspace import Workspace

# 1: first format. 2: without restricted files. A cache file of another format is made anew.
FORMAT_VERSION = 2
# Lengths of the lists: the text stays under 600 tokens.
MOST_LANGUAGES, MOST_FRAMEWORKS, MOST_ENTRIES, MOST_LAYERS, MOST_HUBS = 6, 12, 8, 10, 8
# Of one list: six lines of the longest paths stay under 2,000 tokens.
LONGEST_LINE = 700
# A module is a hub when several others import it.
FEWEST_IMPORTERS = 3
# Packages that shape a project, by the names manifests use.
FRAMEWORKS = frozenset(
    {
        *("django", "flask", "fastapi", "starlette", "aiohttp", "tornado", "sqlalchemy", "pydantic", "celery", "pygls"),
        *("pytest", "click", "typer", "numpy", "pandas", "torch", "tensorflow", "scikit-learn", "httpx", "requests"),
        *("react", "vue", "svelte", "angular", "@angular/core", "next", "nuxt", "express", "fastify", "koa", "hapi"),
        *("@nestjs/core", "electron", "vite", "webpack", "jest", "vitest", "mocha", "typescript", "prisma", "mongoose"),
        *("gin", "echo", "fiber", "cobra", "gorm", "grpc", "tokio", "actix-web", "axum", "serde", "clap", "rocket"),
        *("spring-boot", "spring-boot-starter-web", "hibernate", "junit", "quarkus", "micronaut", "rails", "sinatra"),
        *("rspec", "laravel", "symfony", "phoenix", "ecto", "tree-sitter", "sqlite-vec", "apsw"),
    }
)
_NAME_IN_MANIFEST = re.compile(r"@?[A-Za-z][\w.-]*(?:/[\w.-]+)*")


def architecture(plan: Plan, workspace: Workspace) -> tuple[Candidate, ...]:
    """One candidate per folder that has an index with files."""
    found: list[Candidate] = []
    for folder in workspace.folders_in_play(plan.request.folder):
        index = workspace.indexes.get(folder.key)
        if index is None:
            continue
        facts = _cached(folder.root, index, workspace) or _examined(folder.key, folder.root, index, workspace)
        text = facts.get("text", "")
        if not text:
            continue
        found.append(
            Candidate(
                id=f"architecture:{folder.key}",
                source=Source.KNOWLEDGE,
                kind=Kind.ARCHITECTURE,
                title=f"Architecture of {folder.key}",
                relevance=1.0,
                parts=(("architecture", 1.0),),
                why="the question is about the project as a whole",
                text=text,
                origins=tuple(f"{folder.key}/{path}" for path in facts.get("origins", "").split("\n") if path),
            )
        )
    return tuple(found)


def portrait(folder: str, index: Index, workspace: Workspace) -> tuple[str, tuple[str, ...]]:
    """The text, and the files it quotes (manifests). Restricted files are neither named nor counted: one portrait is
    for every model."""
    privacy = _privacy(workspace)
    files = [file for file in index.files() if not privacy.restricts(file.path)]
    if not files:
        return "", ()
    paths = [file.path for file in files]
    n_files, n_bytes = Counter[str](), Counter[str]()
    for file in files:
        n_files[file.language] += 1
        n_bytes[file.language] += file.size
    total = max(1, sum(n_bytes.values()))
    languages = ", ".join(
        f"{name} {n_files[name]} files ({100 * size / total:.0f} %)"
        for name, size in sorted(n_bytes.items(), key=lambda item: (-item[1], item[0]))[:MOST_LANGUAGES]
    )
    manifests = [path for path in paths if path.rsplit("/", 1)[-1] in MANIFESTS and path.count("/") <= 1]
    entries = sorted(
        (path for path in paths if kind_of(path) == "entry point"), key=lambda path: (path.count("/"), path)
    )
    lines = [
        ("Languages", languages),
        ("Frameworks and tools", ", ".join(_frameworks(folder, manifests, workspace))),
        ("Manifest files", ", ".join(manifests[:MOST_FRAMEWORKS])),
        ("Entry points", ", ".join(entries[:MOST_ENTRIES])),
        ("Top folders", ", ".join(_layers(paths))),
        ("Most imported", ", ".join(f"{path} (by {count})" for path, count in _hubs(paths, index))),
    ]
    return "".join(f"{name}: {_bounded(value)}\n" for name, value in lines if value), tuple(manifests)


def _bounded(value: str) -> str:
    """Whole entries only, where deep paths make a line long."""
    return value if len(value) <= LONGEST_LINE else f"{value[:LONGEST_LINE].rpartition(', ')[0]}, …"


def _privacy(workspace: Workspace) -> Privacy:
    snapshot = workspace.snapshot
    return Privacy.compile(snapshot.settings, tuple(folder.key for folder in snapshot.folders), snapshot.policy)


def _frameworks(folder: str, manifests: Iterable[str], workspace: Workspace) -> list[str]:
    found: dict[str, None] = {}
    for path in manifests:
        file = workspace.read(folder, path)
        for name in _NAME_IN_MANIFEST.findall("".join(file.lines) if file is not None else ""):
            short = name if name.startswith("@") else name.rsplit("/", 1)[-1]
            if short.lower() in FRAMEWORKS:
                found[short] = None
    return sorted(found)[:MOST_FRAMEWORKS]


def _layers(paths: Iterable[str]) -> list[str]:
    """Folders at the top with their file counts; a lone source folder is opened one level."""
    tops = Counter(path.split("/", 1)[0] for path in paths if "/" in path)
    opened = Counter[str]()
    for path in paths:
        parts = path.split("/")
        if len(parts) > 2 and parts[0] in ("src", "lib", "app", "packages", "internal", "pkg", "crates", "cmd"):
            opened[f"{parts[0]}/{parts[1]}"] += 1
    for name in {name.split("/")[0] for name in opened}:
        del tops[name]
    counts = sorted((tops + opened).items(), key=lambda item: (-item[1], item[0]))
    return [f"{name}/ ({count})" for name, count in counts[:MOST_LAYERS]]


def _hubs(paths: Iterable[str], index: Index) -> list[tuple[str, int]]:
    ends: dict[str, list[str]] = {}
    known = list(paths)
    for path in known:
        stem = path.rsplit(".", 1)[0].removesuffix("/__init__").removesuffix("/index").removesuffix("/mod")
        parts = stem.split("/")
        for start in range(len(parts)):
            ends.setdefault("/".join(parts[start:]), []).append(path)
    importers: dict[str, set[str]] = {}
    for path in known:
        for name in index.imports(path):
            for target in _targets(path, name, ends):
                if target != path:
                    importers.setdefault(target, set()).add(path)
    counted = [(path, len(by)) for path, by in importers.items() if len(by) >= FEWEST_IMPORTERS]
    return sorted(counted, key=lambda item: (-item[1], item[0]))[:MOST_HUBS]


def _targets(importer: str, name: str, ends: Mapping[str, list[str]]) -> list[str]:
    """Files that an import names: a relative path or dotted name, else the files whose path ends like it, if few."""
    module = name.strip("\"'<>; ")
    if module.startswith(("./", "../")):
        stem = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
        return ends.get(stem, []) or ends.get(re.sub(r"\.\w+$", "", stem), [])
    dots = len(module) - len(module.lstrip("."))
    if dots:
        base = importer
        for _ in range(dots):
            base = posixpath.dirname(base)
        return ends.get(posixpath.join(base, module[dots:].replace(".", "/")).strip("/"), [])
    written = re.sub(r"\.(?:h|hpp|hh|js|ts)$", "", module).replace("::", "/")
    parts = (written if "/" in written else written.replace(".", "/")).split("/")
    for start in range(len(parts)):
        found = ends.get("/".join(parts[start:]), [])
        # One word (`types`, `json`) names too many things to be taken for a file of the project by itself.
        if len(found) == 1 and (len(parts) - start > 1 or len(parts) == 1):
            return found
    return []


def _cache_file(root: str, workspace: Workspace) -> Path | None:
    if workspace.cache_dir is None or workspace.gate.active:
        return None  # what one reader may see is not kept for another
    return workspace.cache_dir / f"architecture-{hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()}.json"


def _cached(root: str, index: Index, workspace: Workspace) -> dict[str, str] | None:
    path = _cache_file(root, workspace)
    if path is None:
        return None
    try:
        facts = cast("object", json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None
    if not isinstance(facts, dict):
        return None
    kept = {str(key): str(value) for key, value in cast("dict[object, object]", facts).items()}
    return kept if kept.get("state") == _state(index, workspace) and kept.get("text") else None


def _examined(folder: str, root: str, index: Index, workspace: Workspace) -> dict[str, str]:
    state = _state(index, workspace)
    text, origins = portrait(folder, index, workspace)
    facts = {"state": state, "text": text, "origins": "\n".join(origins)}
    path = _cache_file(root, workspace)
    if path is not None and text:
        # Another process may read at any moment: the file appears whole or not at all.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(facts, stream)
            os.replace(name, path)
    return facts


def _state(index: Index, workspace: Workspace) -> str:
    hidden = "\n".join(private_patterns(workspace.snapshot.settings, workspace.snapshot.policy))
    digest = hashlib.blake2b(hidden.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{FORMAT_VERSION}:{index.generation}:{digest}:{workspace.snapshot.policy.closed}"
