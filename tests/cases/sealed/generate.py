"""Writes the test vectors of sealed history beside itself: one defect a file, with the error it must end in.

`python tests/cases/sealed/generate.py` from the repository. Keys, salts and nonces are made from fixed words, so the
files are always the same. Each has a `stage`: `read` (the request as it arrives), `open` (with the key) or `continue`
(what the client brings back, judged without a key).
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from haversack import sealed, sealing
from haversack.lsp import to_lsp, wire
from haversack.types import Message, OpenedRecord, Role, Sealed, ToolCall

FOLDER = Path(__file__).parent
KEY = hashlib.sha256(b"key of the vectors").digest()
OTHER_KEY = hashlib.sha256(b"another key").digest()

Json = dict[str, Any]
Change = Callable[[Json], object]

CLEAR = (
    Message(Role.USER, "Where is the budget split? Zażółć gęślą jaźń 漢字", origins=("demo/src/budget.py",)),
    Message(
        Role.ASSISTANT, "I'll look.", (ToolCall("t1", "read_file", '{"path": "src/budget.py"}'),), origins=("demo/a",)
    ),
    Message(Role.TOOL, "def split_budget(total, parts):\r\n    pass\n", (), "t1", "read_file", True),
)


def flipped(text: str, at: int) -> str:
    """Base64 of the same bytes with one bit turned over."""
    data = bytearray(sealed.decoded(text, None, "vector"))
    data[at] ^= 1
    return sealed.encoded(bytes(data))


def resized(text: str, size: int) -> str:
    data = sealed.decoded(text, None, "vector")
    return sealed.encoded((data + bytes(size))[:size])


def to_wire(message: Message) -> Json:
    return wire.write(to_lsp.sealed_message(message))


def seal_all(key: bytes = KEY, messages: tuple[Message, ...] = CLEAR, session: str = "s1") -> list[Message]:
    made = [
        sealing.seal(
            message,
            key,
            ref=f"message:{session}-{at}",
            session=session,
            sequence=at,
            count=lambda text: len(text.split()),
            created_at="2026-01-01T00:00:00Z",
            model="openai/gpt-4o",
        )
        for at, message in enumerate(messages)
    ]
    return made


def opened_all(messages: list[Message], key: bytes = KEY) -> list[Json]:
    return [to_record(sealing.open_record(message, key)) for message in messages]


def to_record(record: OpenedRecord) -> Json:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in record.tool_calls]
    return {
        "ref": record.ref,
        "content": record.content,
        "salt": record.salt,
        "toolCalls": calls,
        "name": record.name,
    }


def vectors() -> Iterator[tuple[str, Json]]:
    """Name and content of every file."""
    numbers = count()
    before = sealing._random
    sealing._random = lambda size: hashlib.shake_256(b"chance %d" % next(numbers)).digest(size)
    try:
        yield from _vectors()
    finally:
        sealing._random = before


def _vectors() -> Iterator[tuple[str, Json]]:
    messages = seal_all()
    other = seal_all(session="s2")
    history = [to_wire(message) for message in messages]
    records = opened_all(messages)
    base: Json = {"key": sealed.encoded(KEY), "history": history, "records": records}

    def vector(name: str, stage: str, code: str, change: Change = lambda _: None) -> tuple[str, Json]:
        made = copy.deepcopy(base)
        change(made)
        if stage != "continue":
            del made["records"]
        if stage != "open":
            del made["key"]
        return f"{stage}_{name}", {"stage": stage, "error": code, **made}

    for stage in ("read", "open", "continue"):
        yield vector("valid", stage, "")
    for name, code, change in _read_defects():
        yield vector(name, "read", code, change)
    for name, code, change in _open_defects([to_wire(message) for message in other], messages):
        yield vector(name, "open", code, change)
    for name, code, change in _continue_defects(opened_all(other)):
        yield vector(name, "continue", code, change)


def _put(*path: Any) -> Change:
    """Sets the value at `path[:-1]` to `path[-1]`, or to what it makes of the value there."""
    *way, last, value = path

    def change(made: Any) -> None:
        for step in way:
            made = made[step]
        made[last] = value(made[last]) if callable(value) else value

    return change


def _drop(*path: Any) -> Change:
    *way, last = path

    def change(made: Any) -> None:
        for step in way:
            made = made[step]
        del made[last]

    return change


def _seal(name: str, value: Any, at: int = 0) -> Change:
    return _put("history", at, "sealed", name, value)


def _envelope(name: str, value: Any, at: int = 0) -> Change:
    return _put("history", at, "sealed", "envelope", name, value)


def _read_defects() -> Iterator[tuple[str, str, Change]]:
    for version in (0, 2):
        yield f"version_{version}", "sealed_version_unsupported", _envelope("version", version)
    for name, value in (("other", "chacha20poly1305"), ("empty", ""), ("case", "XChaCha20Poly1305")):
        yield f"algorithm_{name}", "sealed_algorithm_unsupported", _envelope("algorithm", value)
    for field, size in (("keyId", 16), ("nonce", 24)):
        for name, value in _misspelled(size):
            yield f"{field}_{name}", "sealed_malformed", _envelope(field, value)
    for name, value in _misspelled(32):
        yield f"commitment_{name}", "sealed_malformed", _seal("commitment", value)
    yield "ciphertext_empty", "sealed_malformed", _envelope("ciphertext", "")
    for size in (1, 15, 16):
        yield f"ciphertext_{size}_bytes", "sealed_malformed", _envelope("ciphertext", lambda t, n=size: resized(t, n))
    yield "ciphertext_newline", "sealed_malformed", _envelope("ciphertext", lambda text: f"{text}\n")
    yield "ciphertext_not_base64", "sealed_malformed", _envelope("ciphertext", "???")
    refs = {"empty": "", "no_id": "message:", "kind": "run_input:s1", "blank": "message:a b"}
    for name, value in {**refs, "long": f"message:{'x' * 201}"}.items():
        yield f"ref_{name}", "sealed_malformed", _seal("ref", value)
    for field in ("session", "createdAt", "model"):
        yield f"{field}_long", "sealed_malformed", _seal(field, "x" * 201)
    yield "half_a_character", "sealed_malformed", _put("history", 0, "origins", ["\ud800"])
    yield "content_beside", "sealed_malformed", _put("history", 0, "content", "in the clear")
    yield "empty_content_beside", "sealed_malformed", _put("history", 0, "content", "")
    yield "name_beside", "sealed_malformed", _put("history", 2, "name", "read_file")
    calls = [{"id": "t1", "name": "read_file", "arguments": "{}"}]
    yield "calls_beside", "sealed_malformed", _put("history", 1, "toolCalls", calls)
    yield "calls_of_user", "sealed_malformed", _seal("toolCallIds", ["t1"])
    yield "ref_twice", "sealed_record_duplicated", _seal("ref", "message:s1-0", 1)
    yield "sequence_twice", "sealed_out_of_place", _seal("sequence", 0, 1)
    yield "other_session", "sealed_out_of_place", _seal("session", "s2", 1)
    yield "reordered", "sealed_out_of_place", lambda made: made["history"].insert(0, made["history"].pop(1))
    yield "role_unknown", "invalid_params", _put("history", 0, "role", "robot")
    yield "neither_content_nor_sealed", "invalid_params", _put("history", 0, "sealed", None)
    yield "tokens_negative", "invalid_params", _seal("tokens", -1)
    yield "tokens_text", "invalid_params", _seal("tokens", "9")
    yield "version_text", "invalid_params", _envelope("version", "1")
    for field in ("version", "algorithm", "keyId", "nonce", "ciphertext"):
        yield f"{field}_missing", "invalid_params", _drop("history", 0, "sealed", "envelope", field)
    for field in ("ref", "session", "sequence", "tokens", "commitment", "envelope"):
        yield f"{field}_missing", "invalid_params", _drop("history", 0, "sealed", field)


def _misspelled(size: int) -> Iterator[tuple[str, str]]:
    """Wrong lengths, and other spellings of base64 for bytes of the right length."""
    right = sealed.encoded(b"\xfb" * size)
    yield "short", sealed.encoded(bytes(size - 1))
    yield "long", sealed.encoded(bytes(size + 1))
    yield "empty", ""
    yield "unpadded", right.rstrip("=") if right.endswith("=") else right[:-1]
    yield "url_alphabet", right.replace("+", "-").replace("/", "_")
    yield "newline", f"{right}\n"
    yield "outside_ascii", f"é{right[1:]}"
    if right.endswith("="):
        last = right.rstrip("=")[-1]
        yield "spare_bits", right.rstrip("=")[:-1] + chr(ord(last) + 1) + "=" * (len(right) - len(right.rstrip("=")))


def _open_defects(other: list[Json], messages: list[Message]) -> Iterator[tuple[str, str, Change]]:
    yield "wrong_key", "sealed_wrong_key", _put("key", sealed.encoded(OTHER_KEY))
    yield "key_id_flipped", "sealed_wrong_key", _envelope("keyId", lambda text: flipped(text, 0))
    yield "key_id_forged", "sealed_tampered", _forge_key_id
    for name, at in (("first", 0), ("middle", 40), ("tag_first", -16), ("tag_last", -1)):
        yield f"ciphertext_{name}_flipped", "sealed_tampered", _envelope("ciphertext", lambda t, n=at: flipped(t, n))
    for name, by in (("cut_1", -1), ("cut_16", -16), ("extended", 1)):
        size = by + len(sealed.decoded(_of(messages[0]).envelope.ciphertext, None, "vector"))
        yield f"ciphertext_{name}", "sealed_tampered", _envelope("ciphertext", lambda t, n=size: resized(t, n))
    yield "ciphertext_17_bytes", "sealed_tampered", _envelope("ciphertext", lambda text: resized(text, 17))
    for at in (0, 23):
        yield f"nonce_{at}_flipped", "sealed_tampered", _envelope("nonce", lambda text, n=at: flipped(text, n))
    yield "commitment_flipped", "sealed_tampered", _seal("commitment", lambda text: flipped(text, 0))
    yield "envelope_of_another", "sealed_tampered", _seal("envelope", other[0]["sealed"]["envelope"])
    yield (
        "ciphertext_of_another",
        "sealed_tampered",
        _envelope("ciphertext", other[0]["sealed"]["envelope"]["ciphertext"]),
    )
    changes = {"ref": "message:x", "session": "s2", "createdAt": "", "model": "", "tokens": 1}
    for field, value in changes.items():
        at = 2 if field == "ref" else 0
        everywhere = field == "session"
        yield field, "sealed_tampered", _everywhere(field, value) if everywhere else _seal(field, value, at)
    yield "sequence", "sealed_tampered", _seal("sequence", 7, 2)
    yield "role", "sealed_tampered", _put("history", 0, "role", "system")
    yield "origins_removed", "sealed_tampered", _put("history", 0, "origins", [])
    yield "origins_added", "sealed_tampered", _put("history", 0, "origins", ["demo/src/budget.py", "demo/b"])
    yield "pinned", "sealed_tampered", _put("history", 0, "pinned", True)
    yield "call_ids", "sealed_tampered", _seal("toolCallIds", ["t2"], 1)
    yield "call_ids_dropped", "sealed_tampered", _seal("toolCallIds", [], 1)
    yield "call_id", "sealed_tampered", _put("history", 2, "toolCallId", "t2")
    yield "not_json", "sealed_malformed", _resealed(messages[0], b"not JSON")
    yield "other_spelling", "sealed_malformed", _resealed(messages[0], b'{"content": "x"}')
    yield "no_object", "sealed_malformed", _resealed(messages[0], b"[]")
    lie = {"content": "not what was committed to", "name": "", "toolCalls": [], "salt": sealed.encoded(bytes(32))}
    yield "commitment_of_another", "sealed_tampered", _resealed(messages[0], sealed.canonical(lie, "vector"))
    short = {**lie, "salt": sealed.encoded(bytes(31))}
    yield "salt_short", "sealed_malformed", _resealed(messages[0], sealed.canonical(short, "vector"))


def _of(message: Message) -> Sealed:
    assert message.sealed is not None
    return message.sealed


def _forge_key_id(made: Json) -> None:
    """Another key, with the message made to look as if it were that key's."""
    made["key"] = sealed.encoded(OTHER_KEY)
    made["history"][0]["sealed"]["envelope"]["keyId"] = sealing.key_id(OTHER_KEY)


def _everywhere(field: str, value: str) -> Change:
    def change(made: Json) -> None:
        for message in made["history"]:
            message["sealed"][field] = value

    return change


def _resealed(message: Message, text: bytes) -> Change:
    """The right key and metadata around another text: only a faulty client can make it."""
    nonce = sealed.decoded(_of(message).envelope.nonce, sealed.NONCE_BYTES, "vector")
    made = sealing._encrypt(text, sealed.associated_data(message), nonce, KEY)
    return _envelope("ciphertext", sealed.encoded(made))


def _continue_defects(other: list[Json]) -> Iterator[tuple[str, str, Change]]:
    yield "reordered", "", lambda made: made["records"].reverse()
    for at in range(3):
        yield f"missing_{at}", "sealed_record_missing", _drop("records", at)
    yield "missing_all", "sealed_record_missing", _put("records", [])
    yield "duplicated", "sealed_record_duplicated", lambda made: made["records"].append(made["records"][0])
    yield (
        "duplicated_for_another",
        "sealed_record_duplicated",
        lambda made: _put("records", 1, made["records"][0])(made),
    )
    yield "unexpected", "sealed_record_unexpected", lambda made: made["records"].append(other[0])
    yield "unexpected_for_asked", "sealed_record_unexpected", _put("records", 0, other[0])
    yield "unexpected_ref", "sealed_record_unexpected", _put("records", 0, "ref", "no ref\n")
    yield "swapped", "sealed_record_swapped", _swap
    yield (
        "swapped_one",
        "sealed_record_swapped",
        lambda made: made["records"][0].update(
            {name: made["records"][2][name] for name in ("content", "salt", "name")}
        ),
    )
    texts = {"empty": "", "longer": lambda t: f"{t} ", "composed": lambda t: t.replace("ó", "o\u0301")}
    for name, value in texts.items():
        yield f"content_{name}", "sealed_record_tampered", _put("records", 0, "content", value)
    yield "content_line_ends", "sealed_record_tampered", _put("records", 2, "content", lambda t: t.replace("\r", ""))
    yield "content_of_other_session", "sealed_record_tampered", _put("records", 0, "content", "another session's")
    yield "name", "sealed_record_tampered", _put("records", 2, "name", "write_file")
    yield "calls_dropped", "sealed_record_tampered", _put("records", 1, "toolCalls", [])
    for field, value in (("id", "t2"), ("name", "rm"), ("arguments", "{}")):
        yield f"call_{field}", "sealed_record_tampered", _put("records", 1, "toolCalls", 0, field, value)
    yield "salt_flipped", "sealed_record_tampered", _put("records", 0, "salt", lambda text: flipped(text, 5))
    yield (
        "salt_of_another",
        "sealed_record_tampered",
        lambda made: _put("records", 0, "salt", made["records"][1]["salt"])(made),
    )
    yield "salt_short", "sealed_malformed", _put("records", 0, "salt", lambda text: resized(text, 31))
    yield "half_a_character", "sealed_malformed", _put("records", 0, "content", "\ud800")
    yield "salt_empty", "sealed_malformed", _put("records", 0, "salt", "")
    yield "salt_not_base64", "sealed_malformed", _put("records", 0, "salt", "~")
    yield "commitment_flipped", "sealed_record_tampered", _seal("commitment", lambda text: flipped(text, 31))
    yield "origins_removed", "sealed_record_tampered", _put("history", 0, "origins", [])
    yield "role", "sealed_record_tampered", _put("history", 0, "role", "system")
    yield "pinned", "sealed_record_tampered", _put("history", 0, "pinned", True)
    yield "tokens", "sealed_record_tampered", _seal("tokens", 1)


def _swap(made: Json) -> None:
    first, third = made["records"][0], made["records"][2]
    first["ref"], third["ref"] = third["ref"], first["ref"]


def text_of(content: Json) -> str:
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, content in vectors():
        (FOLDER / f"{name}.json").write_text(text_of(content), "ascii")


if __name__ == "__main__":
    main()
