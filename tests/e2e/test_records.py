"""Records of a real server's answers, and what a killed one leaves of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw
import pytest
from e2e.raw_client import RawClient, serving

from haversack.record_form import faults
from haversack.records import Keep, Records

pytestmark = pytest.mark.e2e

QUESTION = {"text": "How does add_item work with QUESTIONCANARY?"}


def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def add_item(cart, item):\n    cart.append(item)  # TEXTCANARY\n")
    return folder


def test_an_answer_is_recorded_listed_and_verified(tmp_path: Path) -> None:
    """By the methods an editor calls; a later server still has it, and nothing of the texts is in its files."""
    folder = workspace(tmp_path)
    with serving(tmp_path) as client:
        client.initialize(folder)
        client.wait_ready()
        answer = client.result(1, "haversack/context", QUESTION)
        assert client.result(2, "haversack/preview", QUESTION)["recordId"] is None
        (line,) = client.result(3, "haversack/records/list", {"limit": 5})["records"]
        assert (line["id"], line["intact"], line["tokens"]) == (
            *(answer["recordId"], True),
            answer["manifest"]["tokens"]["total"],
        )
        done = client.result(4, "haversack/records/verify", {"id": line["id"][:8], "workspaceFolder": "shop"})
        assert done["verified"]
        assert {each["state"] for each in done["entries"] if each["path"] == "cart.py"} == {"unchanged"}
        assert client.request(5, "haversack/records/get", {"id": "zz"})["error"]["data"]["code"] == "record_not_found"
        assert client.shutdown() == 0
    stored = b"".join(file.read_bytes() for file in (tmp_path / "data" / "haversack" / "records").iterdir())
    assert b"cart.py" in stored
    assert b"CANARY" not in stored
    (folder / "cart.py").write_text("pass\n")
    with serving(tmp_path) as client:
        client.initialize(folder)
        assert client.result(1, "haversack/records/get", {"id": line["id"]})["summary"] == line
        done = client.result(2, "haversack/records/verify", {"id": line["id"]})
        assert "changed" in {each["state"] for each in done["entries"]}


def test_a_server_killed_between_answer_and_write_spoils_nothing(tmp_path: Path) -> None:
    """At whatever moment: the record may be lost, those before it are whole, and the next server goes on."""
    folder = workspace(tmp_path)
    data = tmp_path / "data" / "haversack" / "records"
    answered: list[str] = []
    for delay in (0.0, 0.002, 0.006, 0.02):
        with serving(tmp_path) as client:
            client.initialize(folder)
            answered += ask_and_kill(client, delay)
        records = Records(data)
        kept = records.list(os.path.realpath(folder), Keep(time.time(), 30), 99)
        assert not [found for record in kept if (found := faults(record))]
        assert {record.id for record in kept} <= set(answered)
        assert set(answered[:-1]) - {record.id for record in kept} <= set(answered[2::3])
        assert not records.take_problems()
        for file in data.glob("*.db"):
            assert apsw.Connection(str(file)).pragma("quick_check") == "ok"


def ask_and_kill(client: RawClient, delay: float) -> list[str]:
    """Three answers, the first two of them surely written, and the kill `delay` seconds after the last."""
    ids = [client.result(number, "haversack/context", QUESTION)["recordId"] for number in (1, 2)]
    client.result(3, "haversack/records/list", {})
    ids.append(client.result(4, "haversack/context", QUESTION)["recordId"])
    time.sleep(delay)
    client.process.kill()
    return ids
