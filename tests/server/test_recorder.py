"""Records as a session keeps them: beside its answers, and never at their cost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from e2e.fakes import FakeIndexing, FakeLine, bundle

from haversack import recorder as recorder_module
from haversack import records as records_module
from haversack.record_form import Record, make_record, summary
from haversack.recorder import Recorder, State
from haversack.records import DAY, Keep, Records
from haversack.session import Session
from haversack.types import Bundle, HaversackError, Kind, Outcome, Request
from haversack.workspace import Workspace
from haversack_index.text import content_hash

SOON = Keep(now=7.0, days=30)


class RowsLine(FakeLine):
    """Answers with rows of a test's choosing."""

    def __init__(self, **rows: Any) -> None:
        super().__init__()
        self.rows = rows

    async def run(self, request: Request, workspace: Workspace, services: object = None) -> Bundle:
        made = bundle(request)
        (row,) = made.manifest.items
        items = tuple(replace(row, id=id, **changes) for id, changes in self.rows.items()) or (row,)
        return replace(made, manifest=replace(made.manifest, items=items))


def make_session(
    data: Path, line: FakeLine | None = None, clock: Callable[[], float] = lambda: 7.0, **folders: Path
) -> Session:
    recorder = Recorder(Records(data))
    session = Session(line=line or FakeLine(), indexing=FakeIndexing(), recorder=recorder, clock=clock)
    for name, folder in folders.items():
        folder.mkdir(exist_ok=True)
        session.add_folder(folder.as_uri(), name)
    return session


@pytest.mark.asyncio
async def test_an_answer_has_a_record_and_a_preview_none(tmp_path: Path) -> None:
    """The answer says its id, and whoever asks right after finds it."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        answer = await session.context(Request("hello"))
        preview = await session.preview(Request("hello"))
        (kept,) = await session.records(10)
        assert (kept.id, kept.time, preview.record_id) == (answer.record_id, 7.0, "")
        assert (await session.record(answer.record_id[:6].upper())).id == answer.record_id


@pytest.mark.asyncio
async def test_equal_answers_have_equal_hashes_and_ids_of_their_own(tmp_path: Path) -> None:
    """A repeated question shows as one, also after a restart."""
    for _ in range(2):
        async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
            await session.context(Request("hello"))
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        await session.context(Request("hello, other"))
        found = await session.records(10)
    assert len({each.id for each in found}) == 3
    assert len({each.hash for each in found}) == 2


@pytest.mark.asyncio
async def test_records_lie_with_the_folder_of_the_question(tmp_path: Path) -> None:
    """The first folder's, when the question names none; a list is of one folder or of all."""
    async with make_session(tmp_path / "data", one=tmp_path / "one", two=tmp_path / "two") as session:
        first = (await session.context(Request("hello"))).record_id
        second = (await session.context(Request("hello", folder="two"))).record_id
        assert {each.id for each in await session.records(10)} == {first, second}
        assert [each.id for each in await session.records(10, "two")] == [second]
        assert len(await session.records(1)) == 1
        with pytest.raises(HaversackError):
            await session.record(second, "one")
    async with make_session(tmp_path / "data", two=tmp_path / "two") as session:
        assert [each.id for each in await session.records(10)] == [second]
    async with make_session(tmp_path / "data") as session:
        assert (await session.context(Request("hello"))).record_id == ""


@pytest.mark.asyncio
async def test_a_session_that_ends_at_once_has_written(tmp_path: Path) -> None:
    """The command line asks once and is gone."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        id = (await session.context(Request("hello"))).record_id
        root = session.folders[0].root
    assert [each.id for each in Records(tmp_path / "data").list(root, SOON, 10)] == [id]


@pytest.mark.asyncio
async def test_keep_days_of_zero_keeps_and_leaves_nothing(tmp_path: Path) -> None:
    """No id, no row, and those there were are gone."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        await session.context(Request("hello"))
        assert len(await session.records(10)) == 1
        session.update_settings({"records": {"keepDays": 0}})
        assert (await session.context(Request("hello"))).record_id == ""
        root = session.folders[0].root
    assert Records(tmp_path / "data").list(root, SOON, 10) == ()


@pytest.mark.asyncio
async def test_old_records_go_while_a_session_runs(tmp_path: Path) -> None:
    """By the clock of the snapshot, which is the session's."""
    now = 7.0
    async with make_session(tmp_path / "data", clock=lambda: now, ws=tmp_path / "ws") as session:
        session.update_settings({"records.keepDays": 2})
        old = (await session.context(Request("hello"))).record_id
        assert [each.id for each in await session.records(10)] == [old]
        now += 2 * DAY + 1
        new = (await session.context(Request("hello"))).record_id
        assert [each.id for each in await session.records(10)] == [new]


@pytest.mark.asyncio
async def test_an_untrusted_workspace_cannot_shorten_its_own_log(tmp_path: Path) -> None:
    """How long records live is the user's to say."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        session.trusted = False
        session.update_settings({"records.keepDays": 0})
        assert session.settings.records_keep_days == 30
        assert [problem.code for problem in session.settings_problems] == ["setting_refused"]


@pytest.mark.asyncio
async def test_a_folder_that_cannot_be_written_costs_the_record_alone(tmp_path: Path) -> None:
    """The next answer says so; reading says it at once."""
    (tmp_path / "data").write_text("a file in the place of the folder")
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        assert (await session.context(Request("hello"))).status == "completed"
        assert await session.records(10) == ()
        again = await session.context(Request("hello"))
        assert [problem.code for problem in again.problems] == ["records_unavailable"]


@pytest.mark.asyncio
async def test_a_full_disk_costs_the_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded before stays, and recording goes on once there is room."""
    large = RowsLine(**{f"row{at}": {"path": f"src/{at}.py"} for at in range(400)})
    async with make_session(tmp_path / "data", large, ws=tmp_path / "ws") as session:
        first = (await session.context(Request("hello"))).record_id
        assert len(await session.records(10)) == 1
        connect = apsw.Connection
        pages = connect(str(next((tmp_path / "data").glob("*.db")))).pragma("page_count")

        def full(name: str) -> apsw.Connection:
            connection = connect(name)
            connection.pragma("max_page_count", pages)
            return connection

        monkeypatch.setattr(apsw, "Connection", full)
        assert (await session.context(Request("hello"))).status == "completed"
        assert [each.id for each in await session.records(10)] == [first]
        monkeypatch.undo()
        third = await session.context(Request("hello"))
        assert [problem.code for problem in third.problems] == ["records_unavailable"]
        assert {each.id for each in await session.records(10)} == {first, third.record_id}


@pytest.mark.asyncio
async def test_a_stuck_disk_costs_no_answer_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come while the writer waits for another process that holds the database."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        await session.context(Request("hello"))
        await session.records(1)
        monkeypatch.setattr(records_module, "BUSY_MILLISECONDS", 300)
        holder = apsw.Connection(str(next((tmp_path / "data").glob("*.db"))))
        holder.execute("BEGIN IMMEDIATE")
        started = time.perf_counter()
        for _ in range(5):
            await session.context(Request("hello"))
            await asyncio.sleep(0)
        assert time.perf_counter() - started < 0.25
        holder.execute("ROLLBACK")
        holder.close()
        assert len(await session.records(10)) > 1


@pytest.mark.asyncio
async def test_a_record_is_made_after_its_answer_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows: nothing of a record is made before the callbacks ran that send an answer."""
    begun: list[str] = []

    def noted(id: str, *rest: Any) -> Record:
        begun.append(id)
        return make_record(id, *rest)

    monkeypatch.setattr(recorder_module, "make_record", noted)
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        begun_before: list[list[str]] = []

        def send(task: object) -> None:
            time.sleep(0.05)  # a writer on another thread would begin meanwhile
            begun_before.append([*begun])

        asking = asyncio.create_task(session.context(Request("hello")))
        asking.add_done_callback(send)
        answer = await asking
        assert begun_before == [[]]
        assert [each.id for each in await session.records(1)] == begun == [answer.record_id]


@pytest.mark.asyncio
async def test_verify_says_what_became_of_each_file(tmp_path: Path) -> None:
    """Compared with the text as it is now; what is no file, or was not served, is not."""
    digest = content_hash(b"x = 1\n")
    row = {"lines": (0, 1), "content_hash": digest}
    line = RowsLine(
        same={"path": "same.py", **row},
        changed={"path": "changed.py", **row},
        gone={"path": "gone.py", **row},
        memory={"path": None, "lines": None, "kind": Kind.MEMORY},
        secret={"path": "secret.py", "restricted": True, **row},
        elsewhere={"path": "same.py", "folder": "other", **row},
        outside={"path": "../outside.py", **row},
        unserved={"path": "gone.py", "outcome": Outcome.EXCLUDED, **row},
    )
    (tmp_path / "outside.py").write_text("x = 1\n")
    async with make_session(tmp_path / "data", line, ws=tmp_path / "ws") as session:
        (tmp_path / "ws" / "same.py").write_text("x = 1\n")
        (tmp_path / "ws" / "changed.py").write_text("x = 2\n")
        id = (await session.context(Request("hello"))).record_id
        done = await session.verify_record(id)
        assert done.faults == ()
        states = [each.state for each in done.entries]
        assert states == [
            *(State.UNCHANGED, State.CHANGED, State.GONE, State.NO_FILE, State.WITHHELD, State.NOT_OPEN, State.GONE),
        ]
    # Another client may call the folder otherwise.
    async with make_session(tmp_path / "data", renamed=tmp_path / "ws") as session:
        assert [each.state for each in (await session.verify_record(id)).entries] == states


@pytest.mark.asyncio
async def test_verify_compares_no_document_that_its_reader_may_not_have(tmp_path: Path) -> None:
    """Another tenant's is gone, as for its questions, and told from a missing one by nothing; what is kept from agents
    is withheld, whatever it holds by now. The policy is that of the files as they are."""
    row = {"lines": (0, 1), "content_hash": content_hash(b"x = 1\n")}
    paths = ("free.py", "acme/deal.py", "acme/none.py", "legal/opinion.py", "plans/offer.py")
    rows = {f"row{at}": {"path": path, **row} for at, path in enumerate(paths)}
    async with make_session(tmp_path / "data", RowsLine(**rows), ws=tmp_path / "ws") as session:
        for path in paths:
            if path != "acme/none.py":
                (tmp_path / "ws" / path).parent.mkdir(exist_ok=True)
                (tmp_path / "ws" / path).write_text("x = 1\n")
        id = (await session.context(Request("hello"))).record_id
        states = [each.state for each in (await session.verify_record(id)).entries]
        assert states == [*(State.UNCHANGED, State.UNCHANGED, State.GONE, State.UNCHANGED, State.UNCHANGED)]
        documents = {"privilegedPaths": ["legal/"], "strategyPaths": ["plans/"], "tenants": {"acme": ["acme/"]}}
        (tmp_path / "ws" / ".haversack").mkdir()
        policy = json.dumps({"version": 1, "documents": documents})
        (tmp_path / "ws" / ".haversack" / "policy.json").write_text(policy)
        expected = {"": State.GONE, "globex": State.GONE, "acme": State.UNCHANGED}
        for tenant, state in expected.items():
            states = [each.state for each in (await session.verify_record(id, tenant=tenant)).entries]
            assert states == [State.UNCHANGED, state, State.GONE, State.WITHHELD, State.WITHHELD]


@pytest.mark.asyncio
async def test_verify_finds_a_changed_record_and_reads_no_file_for_it(tmp_path: Path) -> None:
    """What it names cannot be trusted."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        id = (await session.context(Request("hello"))).record_id
        await session.records(1)
        connection = apsw.Connection(str(next((tmp_path / "data").glob("*.db"))))
        connection.execute("UPDATE records SET document = replace(document, 'a.py', 'b.py')")
        connection.close()
        done = await session.verify_record(id)
        assert (done.faults, done.entries) == (("its content does not have its hash",), ())
        assert not summary((await session.records(1))[0]).intact


@pytest.mark.asyncio
async def test_unknown_and_empty_ids_are_refused(tmp_path: Path) -> None:
    """Also by a session that keeps no records."""
    async with make_session(tmp_path / "data", ws=tmp_path / "ws") as session:
        await session.context(Request("hello"))
        for prefix in ("zzz", "", " ", "%"):
            with pytest.raises(HaversackError) as caught:
                await session.record(prefix)
            assert caught.value.code == "record_not_found"
    async with Session(line=FakeLine(), indexing=FakeIndexing()) as session:
        assert await session.records(10) == ()
        with pytest.raises(HaversackError):
            await session.verify_record("a")
