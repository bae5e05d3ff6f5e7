"""The gate: required and restricted are decided here and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from haversack import bugs
from haversack.mark import mark
from haversack.policy.privacy import Privacy
from haversack.types import (
    Candidate,
    Confidence,
    FileText,
    Intent,
    Kind,
    Plan,
    Request,
    Settings,
    Source,
    Supplied,
)

PLAN = Plan(
    request=Request("q", supplied=(Supplied("s1", "t", "x", required=True), Supplied("s2", "t", "x"))),
    codebase=True,
    broad=False,
    intent=Intent.CHAT,
    categories=(),
    confidence=Confidence.HIGH,
    reason="",
    terms=(),
    identifiers=(),
    paths=(),
    sources=(),
    mentions=(),
)
SECRETS = Privacy.compile(Settings(restricted_paths=("secrets/",)), ("ws",))
CLOSED = Privacy.compile(Settings(restricted_paths=("[",)))


def candidate(source: Source = Source.MENTIONS, kind: Kind = Kind.FILE, path: str | None = "a.py") -> Candidate:
    file = FileText("ws", path, ("x\n",), "python", "00") if path else None
    return Candidate("c", source, kind, "c", 1.0, (), "", file=file, text="" if file else "x")


def restricted(item: Candidate, privacy: Privacy = SECRETS) -> bool:
    return mark([item], PLAN, privacy)[0].restricted


def test_order_and_number_are_kept() -> None:
    """One mark for each candidate, in the order given."""
    items = [replace(candidate(), id=str(number)) for number in range(5)]
    assert [item.candidate for item in mark(items, PLAN, SECRETS)] == items


@pytest.mark.parametrize("source", [Source.MENTIONS, Source.SYMBOLS, Source.DIFF, Source.DIAGNOSTICS, Source.SUPPLIED])
def test_what_the_user_names_is_required(source: Source) -> None:
    """Mentions of files, symbols, the diff and problems keep their claim."""
    assert mark([replace(candidate(source), required=True)], PLAN, SECRETS)[0].required
    assert not mark([candidate(source)], PLAN, SECRETS)[0].required


@pytest.mark.parametrize("source", [Source.HYBRID, Source.KNOWLEDGE, Source.EDITS])
def test_guesses_cannot_be_required(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that guesses and claims to be required is a bug; in use its claim is dropped."""
    item = replace(candidate(source), required=True)
    with pytest.raises(bugs.Impossible):
        mark([item], PLAN, SECRETS)
    monkeypatch.delenv("HAVERSACK_PANIC")
    assert not mark([item], PLAN, SECRETS)[0].required


def test_supplied_items_are_required_by_the_request() -> None:
    """The request's own word counts for supplied candidates, by id."""
    items = [replace(candidate(Source.SUPPLIED, Kind.SUPPLIED), id=name) for name in ("s1", "s2")]
    assert [item.required for item in mark(items, PLAN, SECRETS)] == [True, False]


def test_text_is_restricted_by_the_file_it_is_from() -> None:
    """A file under a restricted path is restricted, its neighbour is not."""
    assert restricted(candidate(path="secrets/key.py"))
    assert not restricted(candidate(path="src/key.py"))


@pytest.mark.parametrize("kind", list(Kind))
def test_text_is_restricted_by_any_of_its_origins(kind: Kind) -> None:
    """A diff, a memory or an outline that quotes a restricted file is restricted, whatever its kind."""
    item = replace(candidate(kind=kind, path=None), origins=("ws/src/a.py", "ws/secrets/key.py"))
    assert restricted(item)
    assert not restricted(replace(item, origins=("ws/src/a.py",)))


def test_files_outside_every_folder_are_restricted() -> None:
    """No pattern can be relative to a folder they are not in; a buffer that was never saved is its author's own."""
    outside = candidate(path="file:///mnt/shared/plan.py")
    assert outside.file is not None
    assert restricted(replace(outside, file=replace(outside.file, folder=""), origins=()))
    untitled = replace(outside, file=replace(outside.file, folder="", path="untitled:Untitled-1"), origins=())
    assert not restricted(untitled)
    cell = replace(outside, file=replace(outside.file, folder="", path="vscode-notebook-cell:/ws/data/n.ipynb#a"))
    assert restricted(replace(cell, origins=()))
    assert not restricted(replace(outside, file=replace(outside.file, folder=""), origins=()), Privacy())


def test_origins_count_besides_the_file() -> None:
    """A candidate cut from a harmless file, with text of a restricted one in it, is restricted."""
    assert restricted(replace(candidate(path="src/a.py"), origins=("ws/secrets/key.py",)))


@pytest.mark.parametrize("kind", [Kind.DIFF, Kind.EDIT, Kind.DIAGNOSTIC, Kind.CODE, Kind.OVERVIEW])
def test_quotes_of_unknown_origin_are_restricted(kind: Kind) -> None:
    """Text that must be from some file, and does not say from which, does not leave."""
    assert restricted(candidate(kind=kind, path=None))
    assert not restricted(candidate(kind=kind, path=None), Privacy())


@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.TEAM, Kind.ARCHITECTURE, Kind.SUPPLIED])
def test_text_of_no_file_is_free(kind: Kind) -> None:
    """A memory or a supplied note without a path was not read from a file."""
    assert not restricted(candidate(kind=kind, path=None))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_broken_pattern_restricts_everything(kind: Kind) -> None:
    """When the privacy list could not be understood, nothing is free."""
    assert restricted(candidate(kind=kind, path=None), CLOSED)
    assert restricted(candidate(kind=kind), CLOSED)
