"""Search by meaning and by words: for each file found its outline, and the definitions that were hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haversack.gatherers.naming import file_flags, lines_id, origin, question_words, title
from haversack.gatherers.outline import definition_forms, outline, shrinking, signatures, telling
from haversack.gatherers.overview import overview
from haversack.lines import merged
from haversack.types import Candidate, Detail, FileText, Form, Kind, Plan, Problem, Source
from haversack.workspace import Located, Workspace
from haversack_index.types import FileHit, Hit, Parts, Query, SearchResult

# Files asked of the search: outlines are cheap, and breadth at a small budget comes from them.
FILES_SEARCHED = 40
# Signatures shown of a file, by its rank: (up to this rank, at most so many). The first files are the likely ones and
# worth a look at what else they hold; of the others a name and a few lines tell whether to ask for more.
OUTLINE_SYMBOLS = ((5, 8), (20, 5), (FILES_SEARCHED, 3))
# The least an outline shows when its longer form does not fit.
FEWEST_SYMBOLS = 2
# Files handled between two chances to stop: some 5 ms of reading.
FILES_PER_STEP = 8
# How much a file's rank weighs on its hits: at 1 a good hit in the tenth file never gets in, at 0 files do not count.
FILE_POWER = 0.7


async def gather(plan: Plan, workspace: Workspace) -> tuple[tuple[Candidate, ...], tuple[Problem, ...]]:
    problems: list[Problem] = []
    found: list[tuple[str, FileHit]] = []
    for folder in workspace.folders_in_play(plan.request.folder):
        if folder.key not in workspace.indexes:
            problems.append(_problem("no_index", f"{folder.key} has no index yet, so it was not searched."))
            continue
        if not plan.terms:
            continue  # nothing to search for; an overview answers
        result = await workspace.run(_search, folder.key, plan, workspace)
        workspace.searched[folder.key] = (result.generation, result.tier)
        problems += [_problem("search_degraded", f"{folder.key}: {text}") for text in result.problems]
        found += [(folder.key, file) for file in result.files]
    found.sort(key=lambda pair: -pair[1].score)
    best = _Best.of(found)
    candidates: list[Candidate] = []
    for start in range(0, len(found), FILES_PER_STEP):
        step = found[start : start + FILES_PER_STEP]
        some, troubles = await workspace.run(_of_files, step, start, best, plan, workspace)
        candidates += some
        problems += troubles
    if plan.broad or plan.practical:
        for folder in workspace.folders_in_play(plan.request.folder):
            candidates += await workspace.run(overview, folder.key, plan, workspace)
    return tuple(candidates), tuple(problems)


@dataclass(frozen=True, slots=True)
class _Best:
    """The best scores of a search: its scores have no scale of their own, so relevance is measured against these."""

    file: float
    hit: float

    @classmethod
    def of(cls, found: Sequence[tuple[str, FileHit]]) -> _Best:
        hits = (hit.score for _, file in found for hit in file.hits)
        return cls(max((file.score for _, file in found), default=0.0), max(hits, default=0.0))

    def of_file(self, file: FileHit) -> float:
        return _share(file.score, self.file)

    def of_hit(self, hit: Hit, file: FileHit) -> float:
        """What it says itself, and what its file is worth: a stray match in a poor file is a poor one."""
        return _share(hit.score, self.hit) * self.of_file(file) ** FILE_POWER


def _share(score: float, best: float) -> float:
    return min(1.0, max(0.0, score / best)) if best > 0 else 0.0


def _search(folder: str, plan: Plan, workspace: Workspace) -> SearchResult:
    settings = workspace.snapshot.settings
    return workspace.indexes[folder].search(
        Query(
            text=plan.search_text or plan.request.text,
            terms=plan.terms,
            identifiers=plan.identifiers,
            paths=plan.paths,
            max_files=max(FILES_SEARCHED, settings.max_files),
            hits_per_file=settings.top_k,
            tests_wanted=plan.tests_wanted,
            docs_wanted=plan.docs_wanted,
            vector_weight=settings.vector_weight,
            text_weight=settings.text_weight,
            overlay=workspace.overlay(folder),
            by_meaning=folder not in workspace.words_only,
        )
    )


def _of_files(
    found: list[tuple[str, FileHit]], first_rank: int, best: _Best, plan: Plan, workspace: Workspace
) -> tuple[list[Candidate], list[Problem]]:
    candidates: list[Candidate] = []
    problems: list[Problem] = []
    asked = question_words(plan)
    for rank, (folder, hit) in enumerate(found, first_rank):
        located, gone = _locate(folder, hit, workspace)
        file = located[0][0].file if located else workspace.read(folder, hit.path)
        if gone or file is None:
            count = "its file" if file is None else f"{gone} of its {len(hit.hits)} hits"
            problems.append(_problem("gone", f"{folder}/{hit.path}: {count} changed since it was indexed and is gone."))
        if file is None or not file.lines or (hit.hits and not located):
            continue
        limit = next((most for last, most in OUTLINE_SYMBOLS if rank < last), FEWEST_SYMBOLS)
        places = [each for each, _ in located]
        outlines = _outlines(file, places, (limit, FEWEST_SYMBOLS), asked, workspace)
        stale = any(each.stale for each, _ in located)
        most_files = workspace.snapshot.settings.max_files
        has_code = rank < most_files  # beyond the limit a file shows its outline alone
        candidates.append(
            Candidate(
                id=f"outline:{origin(file)}",
                source=Source.HYBRID,
                kind=Kind.OUTLINE,
                title=title(file, workspace),
                relevance=best.of_file(hit),
                parts=hit.parts,
                why=f"file {rank + 1} of the search, by {_strongest(_spelt_out(hit))}"
                + ("" if has_code else _held_back(len(located), most_files)),
                file=file,
                forms=shrinking(*(Form(Detail.OUTLINE, lines) for lines in outlines)),
                origins=(origin(file),),
                file_rank=rank,
                flags=file_flags(file, stale=stale),
            )
        )
        if has_code:
            candidates += [_code(place, hit, rank, best=best, asked=asked, workspace=workspace) for place in located]
    return candidates, problems


def _held_back(n_hits: int, most_files: int) -> str:
    hits = "1 hit" if n_hits == 1 else f"{n_hits} hits"
    return f"; past the limit of {most_files} files, {hits} held back" if n_hits else ""


def _locate(folder: str, hit: FileHit, workspace: Workspace) -> tuple[list[tuple[Located, int]], int]:
    """The hits in today's text with their numbers, one per span; and how many are gone."""
    located: dict[tuple[int, int], tuple[Located, int]] = {}
    gone = 0
    for number, each in enumerate(hit.hits):
        found = workspace.locate(folder, each)
        if found is None:
            gone += 1
        else:
            located.setdefault((found.start, found.end), (found, number))
    return list(located.values()), gone


def _outlines(
    file: FileText, located: list[Located], limits: Sequence[int], asked: frozenset[str], workspace: Workspace
) -> list[tuple[tuple[int, int], ...]]:
    """Lines that stand for the file, one set for each limit of signatures."""
    n_lines = len(file.lines)
    symbols = telling(workspace.symbols(file.folder, file.path), asked, [(each.start, each.end) for each in located])
    if symbols:
        return [signatures(symbols[:limit], n_lines) for limit in limits]
    heads = [(each.start, min(each.end, each.start + 2)) for each in located]
    return [merged(heads[:limit], n_lines) or outline((), n_lines, asked, limit) for limit in limits]


def _code(
    place: tuple[Located, int], hit: FileHit, rank: int, *, best: _Best, asked: frozenset[str], workspace: Workspace
) -> Candidate:
    located, number = place
    file, source = located.file, hit.hits[number]
    name = ".".join(located.heading)
    return Candidate(
        id=lines_id("code", file, located.start, located.end),
        source=Source.HYBRID,
        kind=Kind.CODE,
        title=f"{title(file, workspace)} {name}".rstrip(),
        relevance=best.of_hit(source, hit),
        parts=source.parts,
        why=f"hit {number + 1} in file {rank + 1} of the search, by {_strongest(source.parts)}",
        file=file,
        forms=definition_forms(
            file.lines,
            (located.start, located.end),
            located.signature_end,
            workspace.symbols(file.folder, file.path),
            asked,
        ),
        heading=located.heading,
        origins=(origin(file),),
        file_rank=rank,
        flags=file_flags(file, stale=located.stale),
    )


def _spelt_out(file: FileHit) -> Parts:
    """A file's parts with what its best passage was found by in place of "passages"."""
    passages = {"best_chunk", "further"}
    weight = sum(value for name, value in file.parts if name in passages)
    best = file.hits[0].parts if file.hits else ()
    total = sum(value for _, value in best)
    own = tuple(part for part in file.parts if part[0] not in passages)
    return (*own, *((name, weight * value / total) for name, value in best if total > 0))


# The parts of a score in the words of a person.
_SPOKEN = {
    "vector": "meaning",
    "keyword": "words",
    "names": "the names it defines",
    "written_name": "a name you wrote",
    "path": "its path",
    "file_name": "its file name",
    "written_path": "a path you wrote",
}


def _strongest(parts: Parts) -> str:
    """The names of the two greatest parts of a score, as a person reads them."""
    sums: dict[str, float] = {}
    for name, value in parts:
        spoken = _SPOKEN.get(name, name)
        sums[spoken] = sums.get(spoken, 0.0) + value
    greatest = sorted((part for part in sums.items() if part[1] > 0), key=lambda part: -part[1])[:2]
    return " and ".join(name for name, _ in greatest) or "nothing in particular"


def _problem(code: str, message: str) -> Problem:
    return Problem(Source.HYBRID.value, code, message)
