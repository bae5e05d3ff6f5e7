"""Records of answers: what they hold, how a changed one is found, and what happens to their database."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from e2e.fakes import bundle

from haversack import records as records_module
from haversack import types
from haversack.record_form import LEFT_OUT, Question, Record, faults, kept_fields, make_record, summary
from haversack.records import DAY, Keep, Records, choose
from haversack.types import (
    Detail,
    Folder,
    HaversackError,
    Kind,
    ManifestItem,
    Outcome,
    Policy,
    Problem,
    Request,
    Settings,
    Skip,
    Snapshot,
    Source,
)

KEY = b"k" * 32
KEEP = Keep(now=1_000.0, days=30)
ROOT = "/home/me/ws"
WORDS = ("QUESTIONCANARY", "TITLECANARY", "WHYCANARY", "NOTECANARY", "MENTIONCANARY", "SECRETPATHCANARY", "TERMCANARY")


def item(name: str, **changes: Any) -> ManifestItem:
    """An ordinary row of a file, with words in every field for people."""
    row = ManifestItem(
        id=f"hybrid:ws/src/{name}.py:1-9",
        source=Source.HYBRID,
        kind=Kind.CODE,
        title="TITLECANARY",
        folder="ws",
        path=f"src/{name}.py",
        lines=(0, 9),
        required=False,
        restricted=False,
        outcome=Outcome.INCLUDED,
        detail=Detail.FULL,
        reasons=("over budget",),
        tokens_before=30,
        tokens_after=20,
        score=50.5,
        parts=(("tier", 50.0), ("match", 0.5)),
        why="because of WHYCANARY",
        content_hash="ab" * 16,
        flags=("unsaved",),
        note="NOTECANARY",
    )
    return replace(row, **changes)


SECRET = item("secret", path="SECRETPATHCANARY.py", id="hybrid:ws/SECRETPATHCANARY.py:1-2", restricted=True)
MENTION = item("mention", id="refused:MENTIONCANARY", folder="", path=None, lines=None, outcome=Outcome.EXCLUDED)


def question(
    *items: ManifestItem, now: float = 1_000.0, text: str = "why QUESTIONCANARY?", keep_restricted: bool = False
) -> Question:
    folders = (Folder("ws", "file:///home/me/ws", ROOT),)
    policy = Policy(record_restricted=keep_restricted)
    snapshot = Snapshot(folders, {}, Settings(), now, policy=policy)
    request = Request(text)
    made = bundle(request, "TEXTCANARY")
    rows = items or (item("a"), item("b", outcome=Outcome.SHORTENED), SECRET, MENTION)
    trouble = (Problem("hybrid", "source_late", "it looked for TERMCANARY", "ask of TERMCANARY"),)
    classification = {"codebase": True, "intent": "chat", "terms": ["TERMCANARY"], "reason": "it says TERMCANARY"}
    manifest = replace(made.manifest, items=rows, classification=classification, index={"ws": {"generation": 1}})
    route = replace(made.route, skipped=(Skip("acme/seer", "local_only", "SECRETPATHCANARY is restricted"),))
    return Question(request, snapshot, replace(made, manifest=manifest, route=route, problems=trouble))


@pytest.fixture
def store(tmp_path: Path) -> Records:
    return Records(tmp_path / "records")


def record(id: str = "aa11", **changes: Any) -> Record:
    return make_record(id, question(**changes), KEY)


# --- what is recorded ---


def test_the_hash_is_of_the_record_alone() -> None:
    """Anyone with the stored text can compute it, and the text is canonical JSON with its format's number."""
    made = record()
    assert hashlib.sha256(made.document.encode()).hexdigest() == made.hash
    content = json.loads(made.document)
    assert json.dumps(content, sort_keys=True, separators=(",", ":")) == made.document
    assert sorted(content) == ["budget", "entries", "format", "problems", "scope", "usage"]
    assert content["format"] == 1
    assert faults(made) == ()


def test_equal_answers_have_equal_hashes_whatever_their_time_and_wording() -> None:
    """Another id, time, duration or wording changes nothing; another question, model, number or file does."""
    base = question()
    bundle_ = base.bundle
    slow = replace(bundle_.manifest, timings=(types.Timing("pack", "ok", 99.0),))
    worded = replace(bundle_.manifest, items=tuple(replace(row, why="x", note="y") for row in bundle_.manifest.items))
    same = {
        make_record(id, each, KEY).hash
        for id, each in {
            "a": base,
            "b": question(now=2_000.0),
            "c": replace(base, bundle=replace(bundle_, manifest=slow)),
            "d": replace(base, bundle=replace(bundle_, manifest=worded)),
            "e": replace(base, bundle=replace(bundle_, problems=(Problem("hybrid", "source_late", "other words"),))),
        }.items()
    }
    assert len(same) == 1
    model = replace(bundle_.route.model, name="other")
    others = {
        make_record("a", each, KEY).hash
        for each in (
            question(text="another question"),
            question(item("a")),
            question(item("a", content_hash="cd" * 16)),
            replace(base, bundle=replace(bundle_, problems=())),
            replace(base, bundle=replace(bundle_, route=replace(bundle_.route, model=model))),
            replace(base, request=replace(base.request, budget_tokens=5)),
            replace(base, request=replace(base.request, recipe="edit")),
        )
    }
    assert len(others | same) == 8


@pytest.mark.parametrize("keep_restricted", [False, True])
def test_no_words_of_anybody_are_in_the_database(store: Records, keep_restricted: bool) -> None:
    """Not of the question, of files, of reasons for people, nor the places of restricted rows, in any byte."""
    store.add(ROOT, make_record("aa11", question(keep_restricted=keep_restricted), KEY), KEEP)
    # A second connection keeps the write-ahead log from being folded away, so that it is looked at as well.
    connection = apsw.Connection(str(store.path(ROOT)))
    connection.execute("SELECT * FROM records").fetchall()
    store.add(ROOT, make_record("bb22", question(keep_restricted=keep_restricted), KEY), KEEP)
    files = sorted(store.path(ROOT).parent.iterdir())
    assert any(file.name.endswith("-wal") and file.stat().st_size for file in files)
    found = b"".join(file.read_bytes() for file in files)
    connection.close()
    assert b"src/a.py" in found
    told = ("SECRETPATHCANARY",) if keep_restricted else ()
    assert [word for word in (*WORDS, "TEXTCANARY") if word.encode() in found] == list(told)


def test_restricted_rows_are_kept_whole_only_when_the_policy_says_so() -> None:
    """Otherwise they count and are told by kind, outcome and tokens; either way the record verifies."""
    withheld, whole = record(), record(keep_restricted=True)
    opaque = json.loads(withheld.document)["entries"][2]
    assert sorted(opaque) == [
        *("detail", "id", "kind", "outcome", "reasons", "required", "restricted", "source"),
        *("tokens_after", "tokens_before", "withheld"),
    ]
    assert (opaque["withheld"], opaque["tokens_after"]) == (True, 20)
    kept = json.loads(whole.document)["entries"][2]
    assert (kept["path"], kept["withheld"]) == ("SECRETPATHCANARY.py", False)
    assert faults(withheld) == faults(whole) == ()
    assert (summary(withheld).withheld, summary(whole).withheld) == (1, 0)


def test_what_could_be_guessed_is_hashed_under_the_folders_key() -> None:
    """The same question in another folder has another hash there, and none of them is its plain hash."""
    here, there = (json.loads(make_record("a", question(), key).document) for key in (KEY, b"x" * 32))
    assert here["scope"]["question"] != there["scope"]["question"]
    assert here["entries"][0]["id"] != there["entries"][0]["id"]
    text = b"why QUESTIONCANARY?"
    assert here["scope"]["question"] not in (
        hashlib.sha256(text).hexdigest(),
        hashlib.blake2b(text, digest_size=16).hexdigest(),
    )
    # The text of a memory is short enough to be guessed; a file's hash has to be comparable.
    assert here["entries"][0]["content_hash"] == "ab" * 16
    assert here["entries"][3]["content_hash"] != "ab" * 16


RECORDED = {
    ManifestItem: {
        *("id", "source", "kind", "folder", "path", "lines", "required", "restricted", "outcome", "detail", "reasons"),
        *("tokens_before", "tokens_after", "score", "parts", "content_hash", "flags", "verdict"),
    },
    types.Verdict: {"place", "priority", "entry", "selected", "reasons", "restricted", "eligibility"},
    types.Eligibility: {
        *("authorization", "tenants", "purposes", "classification", "fresh_until", "treatment", "precedence"),
        "evidence",
    },
    types.Route: {
        *("model", "window", "window_source", "reply_reserve", "max_output", "override_used", "matched_rule"),
        *("fallback_used", "task_type", "effort", "skipped", "degraded", "cost", "approvals"),
    },
    types.Model: {
        *("name", "provider", "family", "window", "max_output", "tokenizer", "gather_budget", "local", "assumed"),
        *("capabilities", "capabilities_known", "requires_key", "input_price", "output_price"),
    },
    types.Skip: {"model", "code"},
    types.Cost: {"low", "high", "limit"},
    types.Problem: {"stage", "code"},
    types.History: {"tier", "tokens_before", "tokens_after", "warning", "used", "state"},
    types.Selection: {"identity", "n_entries", "n_bytes", "tokens"},
}


@pytest.mark.parametrize("kind", RECORDED)
def test_every_field_of_a_row_and_a_route_was_thought_about(kind: type) -> None:
    """A new field is recorded by itself. Whoever adds one says here, or in LEFT_OUT, whether it may hold words."""
    assert set(kept_fields(kind)) == RECORDED[kind]
    left_out = LEFT_OUT.get(kind, frozenset())
    assert left_out <= {field.name for field in fields(kind)}


def test_every_field_of_a_manifest_was_thought_about() -> None:
    """Times, what the last prompt had in common, and the hash over all words are left out; the rest is recorded."""
    recorded = {"items", "tokens", "problems", "classification", "index", "selection"}
    assert {field.name for field in fields(types.Manifest)} - recorded == {"timings", "prefix", "hash"}


def test_a_summary_counts_what_a_list_shows() -> None:
    """Outcomes, tokens and model, from the record alone."""
    line = summary(record())
    assert (line.included, line.shortened, line.redacted, line.excluded, line.withheld) == (2, 1, 0, 1, 1)
    assert (line.model, line.recipe, line.tokens, line.intact) == ("fake/fake", "chat", 22, True)


# --- changed records are found ---


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from leaves(each, (*path, at))
    else:
        yield path


def changed(document: str, path: tuple[Any, ...]) -> str:
    content = json.loads(document)
    parent = content
    for step in path[:-1]:
        parent = parent[step]
    old = parent[path[-1]]
    parent[path[-1]] = (not old) if isinstance(old, bool) else old + 1 if isinstance(old, int | float) else f"{old}x"
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("path", [*leaves(json.loads(record().document))], ids=lambda path: ".".join(map(str, path)))
def test_a_change_to_any_value_of_the_content_is_found(store: Records, path: tuple[Any, ...]) -> None:
    """Of every field of every row, of scope, budget and usage."""
    made = record()
    store.add(ROOT, made, KEEP)
    tampered = changed(made.document, path)
    assert tampered != made.document
    connection = apsw.Connection(str(store.path(ROOT)))
    connection.execute("UPDATE records SET document = ?", (tampered,))
    connection.close()
    (read,) = store.list(ROOT, KEEP, 5)
    assert faults(read) == ("its content does not have its hash",)
    assert not summary(read).intact


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("id", "bb22"), ("time", 999.0), ("time", "noon"), ("hash", "00" * 32), ("seal", "00" * 32)),
        *(("document", "{}"), ("document", ""), ("document", "[" * 50_000), ("document", b"\xff")),
    ],
)
def test_a_change_to_any_column_is_found(store: Records, column: str, value: Any) -> None:
    """Also to what is not in the hash, and by whoever writes something else than text there."""
    store.add(ROOT, record(), KEEP)
    connection = apsw.Connection(str(store.path(ROOT)))
    connection.execute(f"UPDATE records SET {column} = ?", (value,))
    assert {row[1] for row in connection.execute("PRAGMA table_info(records)")} == {
        *("id", "time", "document", "hash", "seal")
    }
    connection.close()
    (read,) = store.list(ROOT, KEEP, 5)
    assert faults(read)
    assert summary(read).model == ""


def test_a_value_replaced_with_its_hash_is_still_found(store: Records) -> None:
    """Who changes content and hash has changed what the seal is of."""
    made = record()
    document = made.document.replace('"asked":null', '"asked":5')
    forged = replace(made, document=document, hash=hashlib.sha256(document.encode()).hexdigest())
    assert faults(forged) == ("its id, time or hash is not the one it was written with",)


def test_unusual_json_of_the_same_meaning_is_found() -> None:
    """The hash is of the text, and the text has one form."""
    made = record()
    document = made.document.replace('"asked":null', '"asked": null')
    other = replace(made, document=document, hash=hashlib.sha256(document.encode()).hexdigest())
    assert "its content does not have its hash" in faults(other)


# --- the database ---


def test_records_come_newest_first_and_by_the_start_of_their_id(store: Records) -> None:
    """A prefix that several share, or none has, is refused with what to do."""
    for at, id in enumerate(("aa11", "aa22", "bb33")):
        store.add(ROOT, make_record(id, question(now=1_000.0 + at), KEY), KEEP)
    assert [each.id for each in store.list(ROOT, KEEP, 2)] == ["bb33", "aa22"]
    assert store.list("/elsewhere", KEEP, 2) == ()
    assert choose(store.starting_with(ROOT, KEEP, "b"), "b").id == "bb33"
    with pytest.raises(HaversackError) as several:
        choose(store.starting_with(ROOT, KEEP, "aa"), "aa")
    assert (several.value.code, several.value.details["ids"]) == ("record_ambiguous", ["aa11", "aa22"])
    with pytest.raises(HaversackError) as none:
        choose(store.starting_with(ROOT, KEEP, "a%"), "a%")
    assert none.value.code == "record_not_found"


def test_a_whole_id_that_begins_others_is_not_ambiguous(store: Records) -> None:
    """It names itself."""
    for id in ("aa", "aab"):
        store.add(ROOT, record(id), KEEP)
    assert choose(store.starting_with(ROOT, KEEP, "aa"), "aa").id == "aa"


def test_old_records_go_at_opening_and_daily(store: Records, tmp_path: Path) -> None:
    """By the snapshot's clock: looked at when a process first opens them, and then once a day; overwritten as well."""
    old = make_record("0ld", question(item("oldname"), now=1_000.0), KEY)
    store.add(ROOT, old, Keep(1_000.0, 1))
    store.add(ROOT, record("aa11", now=1_000.0 + DAY - 1), Keep(1_000.0 + DAY - 1, 1))
    assert [each.id for each in store.list(ROOT, Keep(1_000.0 + DAY - 1, 1), 9)] == ["aa11", "0ld"]
    assert [each.id for each in store.list(ROOT, Keep(1_000.0 + DAY, 1), 9)] == ["aa11"]
    assert b"oldname" not in store.path(ROOT).read_bytes()
    again = Records(tmp_path / "records")
    assert again.list(ROOT, Keep(1_000.0 + 2 * DAY, 1), 9) == ()


def test_keeping_none_removes_what_there_is(store: Records) -> None:
    """As soon as the setting says 0."""
    store.add(ROOT, record(), KEEP)
    store.prune(ROOT, KEEP)
    assert len(store.list(ROOT, KEEP, 9)) == 1
    store.prune(ROOT, replace(KEEP, days=0))
    assert store.list(ROOT, KEEP, 9) == ()


def test_only_the_newest_are_kept(store: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy day does not fill the disk."""
    monkeypatch.setattr(records_module, "MAX_RECORDS", 3)
    for at in range(5):
        store.add(ROOT, record(f"a{at}", now=1_000.0 + at), KEEP)
    assert [each.id for each in store.list(ROOT, KEEP, 9)] == ["a4", "a3", "a2"]


@pytest.mark.parametrize("damage", ["header", "pages", "empty", "text"])
def test_a_damaged_database_is_set_aside_and_a_new_one_begun(tmp_path: Path, damage: str) -> None:
    """Once, with a problem that says so; the old file stays for whoever wants to look."""
    store = Records(tmp_path / "records")
    for at in range(20):
        store.add(ROOT, record(f"a{at}"), KEEP)
    file = store.path(ROOT)
    data = file.read_bytes()
    spoilt = {
        "header": b"\0" * 100 + data[100:],
        "pages": data[:4_096] + b"\xa5" * (len(data) - 4_096),
        "empty": b"",
        "text": b"not a database at all " * 300,
    }[damage]
    file.write_bytes(spoilt)
    fresh = Records(tmp_path / "records")
    fresh.add(ROOT, record("bb22"), KEEP)
    assert [each.id for each in fresh.list(ROOT, KEEP, 99)] == ["bb22"]
    codes = [problem.code for problem in fresh.take_problems()]
    assert codes == ([] if damage == "empty" else ["records_damaged"])
    assert fresh.take_problems() == ()
    if damage != "empty":
        assert Path(f"{file}.damaged").read_bytes() == spoilt


def test_a_database_of_another_version_is_left_alone(store: Records) -> None:
    """It is neither read nor set aside."""
    store.add(ROOT, record(), KEEP)
    connection = apsw.Connection(str(store.path(ROOT)))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(HaversackError) as caught:
        store.add(ROOT, record("bb22"), KEEP)
    assert caught.value.code == "records_format_unknown"
    assert store.path(ROOT).exists()
    assert not store.take_problems()


def test_two_processes_write_at_once(store: Records, tmp_path: Path) -> None:
    """No record is lost, nobody sees a locked database, and both have one key."""
    code = (
        "import sys; from pathlib import Path; from haversack.records import *; from haversack.record_form import *\n"
        "store = Records(Path(sys.argv[1]))\n"
        "for i in range(40): store.add('/w', Record(f'{sys.argv[2]}{i}', i, '{}', '', ''), Keep(1, 30))\n"
    )
    folder = str(tmp_path / "records")
    writers = [subprocess.Popen([sys.executable, "-c", code, folder, name]) for name in "ab"]
    assert [writer.wait(30) for writer in writers] == [0, 0]
    assert len(store.list("/w", Keep(1, 30), 99)) == 80


def test_a_key_is_made_once_and_only_its_owner_reads_it(store: Records) -> None:
    """A half-written one counts as none."""
    key = store.key(ROOT)
    assert len(key) == 32
    assert store.key(ROOT) == store.known_key(ROOT) == key
    file = Path(f"{store.path(ROOT)}.key")
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(key[:5])
    assert store.known_key(ROOT) == b""
    assert store.key(ROOT) != key
    store.add(ROOT, record(), KEEP)
    assert store.path(ROOT).stat().st_mode & 0o077 == 0
