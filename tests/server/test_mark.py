"""The gate: required and restricted are decided here and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from haversack import bugs
from haversack.mark import WITHHELD, WITHHELD_DOCUMENT, WITHHELD_TOOL, keep_documents, mark, mark_history, may_not_leave
from haversack.policy.documents import DocumentGate
from haversack.policy.privacy import UNNAMED_ORIGIN, Privacy
from haversack.types import (
    Candidate,
    Confidence,
    Envelope,
    FileText,
    Image,
    Intent,
    Kind,
    Message,
    Plan,
    Policy,
    Priority,
    Reason,
    Request,
    Role,
    Sealed,
    Settings,
    Source,
    Supplied,
    ToolCall,
    Verdict,
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


def test_what_the_user_left_out_stays_out_by_its_row_or_by_its_file() -> None:
    wanted, other = candidate(), candidate(path="b.py")
    for name in ("c", "ws/a.py"):
        plan = replace(PLAN, request=replace(PLAN.request, exclude=(name,)))
        assert mark([wanted], plan, Privacy())[0].refused == (Reason.UNWANTED,)
    plan = replace(PLAN, request=replace(PLAN.request, exclude=("ws/a.py", "a.py", "b.py")))
    assert mark([other], plan, Privacy())[0].refused == ()


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


SAID = (
    Message(Role.USER, "how?", id="m1", origins=("ws/src/a.py",)),
    Message(
        Role.ASSISTANT,
        "quote of it",
        (ToolCall("t1", "", '{"a": 1}'), ToolCall("t2", "read", "{}")),
        id="m2",
        origins=("ws/src/a.py", "ws/secrets/key.py"),
        images=(Image("a picture", 9),),
        sealed=Sealed("message:m2", "s", 1, 5, "c", Envelope(1, "a", "k", "n", "t")),
    ),
    Message(Role.TOOL, "done", tool_call_id="t1", id="m3"),
)


@pytest.mark.parametrize("documents", [False, True])
def test_a_message_that_quotes_what_is_kept_back_loses_all_its_text(documents: bool) -> None:
    """Words, arguments, pictures and the sealed part go; calls stay paired, and other messages as they are."""
    if documents:
        kept, problems = keep_documents(SAID, DocumentGate.compile(Policy(privileged_paths=("secrets/",)), ("ws",)))
    else:
        kept, problems = mark_history(SAID, SECRETS)
    assert (kept[0], kept[2]) == (SAID[0], SAID[2])
    calls = (ToolCall("t1", WITHHELD_TOOL, "{}"), ToolCall("t2", "read", "{}"))
    notice = WITHHELD_DOCUMENT if documents else WITHHELD
    assert kept[1] == replace(SAID[1], content=notice, tool_calls=calls, images=(), sealed=None)
    code = "history_withheld" if documents else "history_restricted"
    assert [(problem.stage, problem.code) for problem in problems] == [("mark", code)]
    assert problems[0].message.startswith("1 earlier message")
    assert bool(problems[0].remedy) is not documents


def test_a_conversation_that_quotes_nothing_restricted_stays() -> None:
    """As it came, and with nothing to report."""
    free = (SAID[0], SAID[2])
    assert mark_history(list(free), SECRETS) == (free, ())
    assert keep_documents(list(free), DocumentGate.compile(Policy(privileged_paths=("secrets/",)))) == (free, ())


def test_what_a_model_elsewhere_may_not_summarize() -> None:
    """Messages that quote a restricted file; while the rules are closed, also those that quote nothing."""
    assert may_not_leave(SAID, SECRETS) == {1}
    assert may_not_leave(SAID, CLOSED) == {0, 1, 2}
    assert may_not_leave(SAID, Privacy()) == set()


def test_the_word_of_the_owner_restricts_without_any_rule() -> None:
    """A supplied item that its owner keeps on this machine, and text that was restricted when it was served."""
    item = candidate(Source.SUPPLIED, Kind.SUPPLIED, path=None)
    owned = replace(item, verdict=Verdict(0, Priority.OPTIONAL, restricted=True))
    assert restricted(owned, Privacy())
    assert not restricted(replace(owned, verdict=Verdict(0, Priority.OPTIONAL)), Privacy())
    assert restricted(replace(item, origins=(UNNAMED_ORIGIN,)), Privacy())


def test_only_what_the_request_supplied_is_required_by_its_id() -> None:
    """Another source's candidate that happens to be called the same has no claim."""
    assert not mark([replace(candidate(Source.SYMBOLS), id="s1")], PLAN, SECRETS)[0].required
    assert not mark([replace(candidate(Source.SUPPLIED), id="s3")], PLAN, SECRETS)[0].required


@pytest.mark.parametrize("source", [Source.HYBRID, Source.KNOWLEDGE])
@pytest.mark.parametrize("kind", [Kind.SELECTION, Kind.MEMORY])
def test_what_the_user_chose_is_no_guess(source: Source, kind: Kind) -> None:
    """A selection and a rule of the user keep their claim, whatever source brings them."""
    assert mark([replace(candidate(source, kind), required=True)], PLAN, SECRETS)[0].required


def test_each_reason_that_keeps_a_document_back_is_given_once() -> None:
    """By its own path and by its origins; what a source refused stays refused."""
    gate = DocumentGate.compile(Policy(privileged_paths=("legal/",), strategy_paths=("plans/",)), ("ws",))
    item = replace(candidate(path="legal/a.md"), origins=("ws/plans/b.md", "ws/legal/c.md", "ws/src/d.py"))
    assert mark([item], PLAN, Privacy(), gate)[0].refused == (Reason.PRIVILEGED, Reason.STRATEGY)
    assert mark([item], PLAN, Privacy())[0].refused == ()
    assert mark([candidate(path="src/d.py")], PLAN, Privacy(), gate)[0].refused == ()
    named = replace(item, refused=(Reason.OUTSIDE,))
    assert mark([named], PLAN, Privacy(), gate)[0].refused == (Reason.OUTSIDE,)
