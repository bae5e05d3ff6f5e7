"""Sealed messages as seen without a key: their shape, and whether what came back opened is what was asked for.

The text of a sealed message is encrypted by the client (`haversack.sealing`, or the same in another language). Here
are its clear metadata, the bytes that bind them, and a salted commitment: a hash of metadata and text that the client
made when it sealed. With the salt, which was sealed beside the text, an opened message proves to be the sealed one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from haversack.policy.canonical import NotCanonical, canonical_json
from haversack.types import HaversackError, Message, OpenedRecord, Role, Sealed, ToolCall

VERSION = 1
ALGORITHM = "xchacha20poly1305"
NONCE_BYTES = 24  # random nonces of this length never meet, so no counter has to be kept
TAG_BYTES = 16
KEY_ID_BYTES = 16
SALT_BYTES = 32
HASH_BYTES = 32

# Hashes made for one purpose can never pass for one made for another.
_DOMAIN = b"haversack sealed message 1\0"
_REF = re.compile(r"message:[!-~]{1,200}")
# Longer than any id or date in use; they come back in replies and errors.
_LONGEST = 200
# References that an error names; the first ones tell what went wrong.
_MOST_NAMED = 20


def asked(history: Iterable[Message], chosen: Iterable[Message]) -> tuple[Message, ...]:
    """The sealed messages of `history` that are still among the `chosen`, as they were sent."""
    refs = {message.sealed.ref for message in chosen if message.sealed is not None}
    return tuple(message for message in history if message.sealed is not None and message.sealed.ref in refs)


def opened(wanted: Sequence[Message], records: Sequence[OpenedRecord]) -> dict[str, Message]:
    """The messages asked for, in the clear, by reference. Raises for anything but exactly those, each as it was sealed.

    No message is used before all of them have proved right.
    """
    expected = {_seal(message).ref: message for message in wanted}
    given = Counter(record.ref for record in records)
    _refuse("sealed_record_duplicated", "was given more than once", [ref for ref in expected if given[ref] > 1])
    _refuse("sealed_record_unexpected", "was not asked for", [_shown(ref) for ref in given if ref not in expected])
    _refuse("sealed_record_missing", "is missing", [ref for ref in expected if ref not in given])
    return {record.ref: _proved(expected[record.ref], record, wanted) for record in records}


def with_opened(messages: Sequence[Message], clear: Mapping[str, Message]) -> tuple[Message, ...]:
    """The messages with each sealed one replaced by its opened self."""
    return tuple(message if message.sealed is None else clear[message.sealed.ref] for message in messages)


def numbers(history: Sequence[Message], chosen: Sequence[Message]) -> tuple[int, ...]:
    """Where in the history each chosen message stands, from 1; of those in the clear, their place among the chosen."""
    places = {message.sealed.ref: place for place, message in enumerate(history, 1) if message.sealed is not None}
    return tuple(
        place if message.sealed is None else places[message.sealed.ref] for place, message in enumerate(chosen, 1)
    )


def _proved(message: Message, record: OpenedRecord, wanted: Sequence[Message]) -> Message:
    salt = decoded(record.salt, SALT_BYTES, f"salt of {record.ref}")
    text = hashlib.sha256(plaintext(record)).digest()
    if _committed(message, text, salt) != _seal(message).commitment:
        for other in wanted:
            if _committed(other, text, salt) == _seal(other).commitment:
                raise _wrong(
                    "sealed_record_swapped", record.ref, f"came with what belongs to {_seal(other).ref}", _REMEDY
                )
        raise _wrong("sealed_record_tampered", record.ref, "is not what was sealed", _REMEDY)
    if [call.id for call in record.tool_calls] != [call.id for call in message.tool_calls]:
        raise malformed(record.ref, "its tool calls are not those that its metadata name")
    return replace(message, content=record.content, tool_calls=record.tool_calls, name=record.name, sealed=None)


# --- the bytes that are hashed and bound ------------------------------------------------------------------------


def commitment(message: Message, record: OpenedRecord) -> str:
    """What a sealed message states about its text: a hash over salt, metadata and text, in base64."""
    salt = decoded(record.salt, SALT_BYTES, "salt")
    return _committed(message, hashlib.sha256(plaintext(record)).digest(), salt)


def associated_data(message: Message) -> bytes:
    """All that is in the clear, in one spelling. Encryption binds it, so opening notices a change to any of it."""
    seal = _seal(message)
    header = {
        "version": seal.envelope.version,
        "algorithm": seal.envelope.algorithm,
        "keyId": seal.envelope.key_id,
        "nonce": seal.envelope.nonce,
    }
    return canonical({**_metadata(message), "commitment": seal.commitment, "envelope": header}, seal.ref)


def plaintext(record: OpenedRecord) -> bytes:
    """What is committed to, in one spelling. The salt is not in it: it is hashed before."""
    return canonical(content_fields(record), record.ref)


def content_fields(record: OpenedRecord) -> dict[str, object]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in record.tool_calls]
    return {"content": record.content, "name": record.name, "toolCalls": calls}


def canonical(value: object, place: str) -> bytes:
    """JSON in one spelling: keys sorted, no blanks, in UTF-8. Raises for text that no encoding carries."""
    try:
        return canonical_json(value).encode()
    except NotCanonical as error:
        raise malformed(place, str(error)) from None


def _metadata(message: Message) -> dict[str, object]:
    seal = _seal(message)
    return {
        "ref": seal.ref,
        "session": seal.session,
        "sequence": seal.sequence,
        "role": message.role.value,
        "createdAt": seal.created_at,
        "origins": list(message.origins),
        "model": seal.model,
        "tokens": seal.tokens,
        "toolCallIds": [call.id for call in message.tool_calls],
        "toolCallId": message.tool_call_id,
        "pinned": message.pinned,
        "id": message.id,
        "summaryOf": list(message.summary_of),
        "images": [{"reference": image.reference, "tokens": image.tokens} for image in message.images],
    }


def _committed(message: Message, text: bytes, salt: bytes) -> str:
    clear = hashlib.sha256(canonical(_metadata(message), _seal(message).ref)).digest()
    return encoded(hashlib.sha256(_DOMAIN + salt + clear + text).digest())


# --- shape ------------------------------------------------------------------------------------------------------


def check(message: Message, place: str) -> None:
    """Refuses a sealed message that could not be opened or is not in its one spelling. `place` names it."""
    seal = _seal(message)
    envelope = seal.envelope
    if envelope.version != VERSION:
        raise HaversackError(
            "sealed_version_unsupported",
            f"{place}: sealed in version {envelope.version} of the format; version {VERSION} is understood.",
            "Update Haversack, or seal the message again.",
            version=envelope.version,
        )
    if envelope.algorithm != ALGORITHM:
        raise HaversackError(
            "sealed_algorithm_unsupported",
            f"{place}: sealed with an algorithm that is not {ALGORITHM}.",
            "Seal the message again.",
        )
    if not _REF.fullmatch(seal.ref):
        raise malformed(place, "ref is not `message:` and an id of at most 200 printable ASCII characters")
    for name, value in (("session", seal.session), ("createdAt", seal.created_at), ("model", seal.model)):
        if len(value) > _LONGEST:
            raise malformed(place, f"{name} is longer than {_LONGEST} characters")
    if message.tool_calls and message.role is not Role.ASSISTANT:
        raise malformed(place, "only an assistant's message has toolCallIds")
    decoded(envelope.key_id, KEY_ID_BYTES, f"{place}: keyId")
    decoded(envelope.nonce, NONCE_BYTES, f"{place}: nonce")
    decoded(seal.commitment, HASH_BYTES, f"{place}: commitment")
    if len(decoded(envelope.ciphertext, None, f"{place}: ciphertext")) <= TAG_BYTES:
        raise malformed(place, "ciphertext has no text in it")
    canonical(_metadata(message), place)


def check_places(history: Sequence[Message]) -> None:
    """Refuses sealed messages that repeat, are in another order than they were sealed in, or of two sessions."""
    seals = [message.sealed for message in history if message.sealed is not None]
    seen: set[str] = set()
    for before, seal in zip((None, *seals), seals, strict=False):
        if seal.ref in seen:
            raise _wrong("sealed_record_duplicated", seal.ref, "is in the history more than once", _ORDER)
        seen.add(seal.ref)
        if before is not None and seal.session != before.session:
            raise _wrong("sealed_out_of_place", seal.ref, "was sealed in another session than those before it", _ORDER)
        if before is not None and seal.sequence <= before.sequence:
            raise _wrong("sealed_out_of_place", seal.ref, "stands after a message that was sealed later", _ORDER)


def placeholder_calls(ids: Iterable[str]) -> tuple[ToolCall, ...]:
    """Calls of which only the ids are known, so that results pair up with them."""
    return tuple(ToolCall(ident, "", "") for ident in ids)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decoded(text: str, size: int | None, place: str) -> bytes:
    """Bytes of base64 in its one spelling (RFC 4648: standard alphabet, padded), of exactly this size."""
    try:
        data = base64.b64decode(text)  # what is skipped here is missing in the comparison
    except (binascii.Error, ValueError):
        raise malformed(place, "is not base64") from None
    if encoded(data) != text:
        raise malformed(place, "is not base64 in its one spelling")
    if size is not None and len(data) != size:
        raise malformed(place, f"has {len(data)} bytes instead of {size}")
    return data


def malformed(place: str, what: str) -> HaversackError:
    return HaversackError(
        "sealed_malformed", f"{place}: {what}.", "Seal the message again, or leave it out of the history."
    )


def _seal(message: Message) -> Sealed:
    if message.sealed is None:
        raise TypeError("not a sealed message")
    return message.sealed


def _refuse(code: str, what: str, refs: Sequence[str]) -> None:
    if refs:
        more = f" (and {len(refs) - 1:,} more)" if len(refs) > 1 else ""
        raise HaversackError(code, f"{refs[0]}{more} {what}.", _REMEDY, refs=list(refs[:_MOST_NAMED]))


def _wrong(code: str, ref: str, what: str, remedy: str) -> HaversackError:
    return HaversackError(code, f"{ref} {what}.", remedy, refs=[ref])


def _shown(ref: str) -> str:
    return ref if _REF.fullmatch(ref) else "a record without a proper ref"


_ORDER = "Send the sealed messages of one session, each once, in the order that they were sealed in."
_REMEDY = "Send each record of `toDecrypt` once, opened and otherwise unchanged."
