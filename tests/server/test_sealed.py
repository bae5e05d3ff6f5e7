"""Sealed messages by themselves: sealing, opening, and judging without a key what was opened."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases.sealed import generate
from hypothesis import given
from hypothesis import strategies as st

from haversack import sealed, sealing
from haversack.documents import Documents
from haversack.lsp import from_lsp, protocol, to_lsp, wire
from haversack.types import HaversackError, Image, InvalidRequest, Message, Role, ToolCall

VECTORS = sorted(generate.FOLDER.glob("*.json"))
TEXTS = st.text(max_size=60)


def seal(message: Message, key: bytes = generate.KEY, at: int = 0, **changes: Any) -> Message:
    given = {"ref": f"message:{at}", "session": "s", "sequence": at, "count": lambda text: len(text.split())}
    return sealing.seal(message, key, **(given | changes))


def read(history: list[Any]) -> tuple[Message, ...]:
    raw = {"text": "q", "history": history}
    try:
        params = wire.read(raw, protocol.ContextParams)
    except Exception as error:
        raise InvalidRequest(wire.explain(error)) from None
    return from_lsp.request(params, (), Documents(), lambda name: name).history


def judge(vector: dict[str, Any]) -> None:
    messages = read(vector["history"])
    if vector["stage"] == "open":
        key = sealed.decoded(vector["key"], 32, "key")
        for message in messages:
            sealing.open_record(message, key)
    if vector["stage"] == "continue":
        params = wire.read({"turn": "t", "records": vector["records"]}, protocol.ContinueParams)
        sealed.opened(messages, from_lsp.records(params))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_each_defect_ends_in_its_error(path: Path) -> None:
    """One defect a file: the code is the expected one, and no text of any message is in the error."""
    vector = json.loads(path.read_text("ascii"))
    error = HaversackError("", "")
    try:
        judge(vector)
    except HaversackError as raised:
        error = raised
    assert error.code == vector["error"]
    told = f"{error.message} {error.remedy} {error.details}"
    assert not any(word in told for word in ("budget", "split", "look", "read_file", "Zażółć", "another session's"))


# How an error about sealed messages begins: with the place in the request, or with the message's own name.
PLACE = r"params\.history\[\d\]\.sealed|message:\S+|a record without a proper ref|salt(?: of message:\S+)?"
FIELDS = {"keyId", "nonce", "commitment", "ciphertext", "session", "createdAt", "model", "ref", "salt"}


@pytest.mark.parametrize(
    "path", [path for path in VECTORS if json.loads(path.read_text())["error"].startswith("sealed")], ids=str
)
def test_each_defect_is_told_with_its_place_and_what_to_do(path: Path) -> None:
    """The message or the field that is wrong is in the sentence, and a program finds it in the details."""
    vector = json.loads(path.read_text("ascii"))
    with pytest.raises(HaversackError) as raised:
        judge(vector)
    error = raised.value
    told = re.fullmatch(rf"({PLACE}):?(?: \(and (\d) more\))? \S.*\w\.", error.message)
    assert told, error.message
    assert "None" not in error.message
    assert error.remedy.endswith(".")
    field = path.stem.split("_")[1]
    assert error.code != "sealed_malformed" or field not in FIELDS or field in error.message
    if error.code.startswith("sealed_record") or error.code == "sealed_out_of_place":
        refs = error.details["refs"]
        assert isinstance(refs, list)
        assert (refs[0], told[2]) == (told[1], str(len(refs) - 1) if len(refs) > 1 else None)
        assert ("toDecrypt" in error.remedy) == (vector["stage"] == "continue")
    if error.code == "sealed_version_unsupported":
        assert error.details["version"] == vector["history"][0]["sealed"]["envelope"]["version"]


def test_the_bound_bytes_are_json_in_one_spelling() -> None:
    """All that is in the clear, with keys in order: what another client has to bind as well."""
    message = seal(Message(Role.USER, "x", images=(Image("shot.png", 85),), id="m1", origins=("ws/a.py",)))
    assert message.sealed is not None
    envelope = message.sealed.envelope
    assert json.loads(sealed.associated_data(message)) == {
        "commitment": message.sealed.commitment,
        "createdAt": message.sealed.created_at,
        "envelope": {
            "algorithm": "xchacha20poly1305",
            "keyId": envelope.key_id,
            "nonce": envelope.nonce,
            "version": 1,
        },
        "id": "m1",
        "images": [{"reference": "shot.png", "tokens": 85}],
        "model": message.sealed.model,
        "origins": ["ws/a.py"],
        "pinned": False,
        "ref": "message:0",
        "role": "user",
        "sequence": 0,
        "session": "s",
        "summaryOf": [],
        "tokens": message.sealed.tokens,
        "toolCallId": "",
        "toolCallIds": [],
    }


def test_names_of_the_longest_length_are_taken() -> None:
    """200 characters for session, time and model, 201 for none of them."""
    long = "x" * 200
    assert seal(Message(Role.USER, "x"), session=long).sealed is not None
    with pytest.raises(HaversackError, match=r"^message:0: session is longer than 200 characters\.$"):
        seal(Message(Role.USER, "x"), session=f"{long}x")


def test_chosen_messages_keep_the_numbers_of_the_history() -> None:
    """Sealed ones those of the whole history, those in the clear their place among the chosen; both from 1."""
    history = tuple(seal(Message(Role.USER, "x"), at=at) for at in range(3))
    clear = Message(Role.USER, "a summary")
    assert sealed.numbers(history, (clear, history[1], history[2], clear)) == (1, 2, 3, 4)
    assert sealed.numbers(history, (history[2],)) == (3,)


def test_placeholder_calls_say_nothing_but_their_ids() -> None:
    assert sealed.placeholder_calls(["a"]) == (ToolCall("a", "", ""),)


def test_the_vectors_are_what_their_script_makes() -> None:
    """None is missing, left over or changed by hand, and there are enough of them."""
    made = {f"{name}.json": generate.text_of(content) for name, content in generate.vectors()}
    assert made == {path.name: path.read_text("ascii") for path in VECTORS}
    assert len(made) > 130
    assert len({json.loads(text)["error"] for text in made.values()}) == 13


@given(TEXTS, TEXTS, TEXTS, st.sampled_from([Role.USER, Role.ASSISTANT, Role.TOOL]), st.booleans())
def test_what_is_sealed_opens_to_the_same(text: str, name: str, arguments: str, role: Role, pinned: bool) -> None:
    """Over any text, through the wire and back: opened with the key, judged without it, the message is as before."""
    calls = (ToolCall("t1", name, arguments),) if role is Role.ASSISTANT else ()
    message = Message(role, text, calls, "t0" if role is Role.TOOL else "", name, pinned, ("ws/a.py",))
    closed = seal(message)
    raw = wire.write(to_lsp.sealed_message(closed))
    (again,) = read([raw])
    assert again == closed
    record = sealing.open_record(again, generate.KEY)
    assert sealed.opened([again], [record]) == {"message:0": message}


def test_nothing_of_the_text_is_in_the_clear() -> None:
    """Neither text nor tool names nor arguments; ids, role and origins are."""
    calls = (ToolCall("t1", "canary_tool", "canary arguments"),)
    told = repr(seal(Message(Role.ASSISTANT, "canary text", calls, name="canary name", origins=("ws/a.py",))))
    assert "canary" not in told
    assert "t1" in told
    assert "ws/a.py" in told


def test_two_seals_of_one_message_have_nothing_in_common() -> None:
    """Nonce, salt and commitment are new each time, so equal texts do not show."""
    message = Message(Role.USER, "yes")
    seals = [seal(message).sealed for _ in range(1_000)]
    assert len({each.envelope.nonce for each in seals if each}) == 1_000
    assert len({each.commitment for each in seals if each}) == 1_000
    assert len({each.envelope.ciphertext for each in seals if each}) == 1_000


def test_a_key_of_another_length_is_refused() -> None:
    """By both doors, before anything is encrypted."""
    for key in (b"", generate.KEY[:-1], generate.KEY + b"x"):
        with pytest.raises(HaversackError) as refused:
            seal(Message(Role.USER, "x"), key)
        assert refused.value.code == "sealed_key_invalid"
        with pytest.raises(HaversackError) as refused:
            sealing.open_record(seal(Message(Role.USER, "x")), key)
        assert refused.value.code == "sealed_key_invalid"
    assert len(sealing.new_key()) == sealing.KEY_BYTES
    assert sealing.new_key() != sealing.new_key()


def test_half_a_character_cannot_be_sealed() -> None:
    """No encoding carries it, so no hash of it could be the same everywhere."""
    with pytest.raises(HaversackError) as refused:
        seal(Message(Role.USER, "\ud800"))
    assert refused.value.code == "sealed_malformed"


def test_a_key_id_does_not_tell_the_key() -> None:
    """It is half a hash of it: the same for the same key, another for another."""
    assert sealing.key_id(generate.KEY) == sealing.key_id(generate.KEY) != sealing.key_id(generate.OTHER_KEY)
    assert generate.KEY[:8] not in sealed.decoded(sealing.key_id(generate.KEY), 16, "id")


def test_a_plain_message_is_not_opened() -> None:
    """It says what to do instead."""
    with pytest.raises(HaversackError) as refused:
        sealing.open_record(Message(Role.USER, "x"), generate.KEY)
    assert refused.value.code == "sealed_malformed"


def test_calls_other_than_the_metadata_name_are_refused() -> None:
    """A client that commits to calls which it does not list would break the pairing of results."""
    closed = seal(Message(Role.ASSISTANT, "x", (ToolCall("t1", "f", "{}"),)))
    record = sealing.open_record(closed, generate.KEY)
    record = replace(record, tool_calls=(ToolCall("t2", "f", "{}"),))
    assert closed.sealed is not None
    lying = replace(closed, sealed=replace(closed.sealed, commitment=sealed.commitment(closed, record)))
    with pytest.raises(HaversackError) as refused:
        sealed.opened([lying], [record])
    assert refused.value.code == "sealed_malformed"


def test_without_the_library_sealing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: the server runs without it."""
    closed = seal(Message(Role.USER, "x"))
    monkeypatch.setitem(sys.modules, "nacl", None)
    for attempt in (lambda: seal(Message(Role.USER, "x")), lambda: sealing.open_record(closed, generate.KEY)):
        with pytest.raises(HaversackError) as refused:
            attempt()
        assert refused.value.code == "sealed_library_missing"


def test_many_wrong_records_make_a_short_error() -> None:
    """The first ones are named, the rest is counted."""
    asked = [seal(Message(Role.USER, "x"), at=at) for at in range(30)]
    with pytest.raises(HaversackError) as refused:
        sealed.opened(asked, [])
    assert "(and 29 more)" in refused.value.message
    assert len(refused.value.details["refs"]) == 20  # type: ignore[arg-type]
