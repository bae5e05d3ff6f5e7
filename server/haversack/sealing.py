"""Seals messages and opens them again, with a key: for clients and scripts, never for the server.

Nothing the server runs imports this module, so no key can get there. XChaCha20-Poly1305 is libsodium's, through PyNaCl,
which is loaded when first used (extra `sealed`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from haversack import sealed
from haversack.templates.chat import sendable
from haversack.types import Envelope, HaversackError, Message, OpenedRecord, Sealed, ToolCall

KEY_BYTES = 32
_KEY_DOMAIN = b"haversack sealing key 1\0"


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def key_id(key: bytes) -> str:
    """Names a key without telling it, so that the wrong one is told apart from a damaged message."""
    if len(key) != KEY_BYTES:
        raise HaversackError(
            "sealed_key_invalid", f"A key has {KEY_BYTES} bytes, this one {len(key)}.", "Give the session's own key."
        )
    return sealed.encoded(hashlib.sha256(_KEY_DOMAIN + key).digest()[: sealed.KEY_ID_BYTES])


def seal(
    message: Message,
    key: bytes,
    *,
    ref: str,
    session: str,
    sequence: int,
    count: Callable[[str], int],
    created_at: str = "",
    model: str = "",
) -> Message:
    """The message with its text, its tool's name and its calls encrypted; role, origins, ids and `pinned` stay clear.

    `ref` is `message:` and an id that no other message of any session has. `sequence` grows along the session.
    `count` counts tokens, as near to the model's own counting as the client can.
    """
    ident = key_id(key)
    salt = sealed.encoded(_random(sealed.SALT_BYTES))
    record = OpenedRecord(ref, message.content, salt, message.tool_calls, message.name)
    nonce = _random(sealed.NONCE_BYTES)
    envelope = Envelope(sealed.VERSION, sealed.ALGORITHM, ident, sealed.encoded(nonce), "")
    seal = Sealed(ref, session, sequence, _tokens(message, count), "", envelope, created_at, model)
    calls = sealed.placeholder_calls(call.id for call in message.tool_calls)
    closed = replace(message, content="", name="", tool_calls=calls, sealed=seal)
    seal = replace(seal, commitment=sealed.commitment(closed, record))
    closed = replace(closed, sealed=seal)
    text = sealed.canonical({**sealed.content_fields(record), "salt": salt}, ref)
    data = _encrypt(text, sealed.associated_data(closed), nonce, key)
    envelope = replace(envelope, ciphertext=sealed.encoded(data))
    closed = replace(closed, sealed=replace(seal, envelope=envelope))
    sealed.check(closed, ref)
    return closed


def open_record(message: Message, key: bytes) -> OpenedRecord:
    """What `haversack/continue` wants for a sealed message. Raises before any of its text is known to be right."""
    seal = message.sealed
    if seal is None:
        raise HaversackError("sealed_malformed", "This message is not sealed.", "Use it as it is.")
    sealed.check(message, seal.ref)
    if seal.envelope.key_id != key_id(key):
        raise HaversackError(
            "sealed_wrong_key",
            f"{seal.ref} was sealed with another key.",
            "Give the key of the session that it is from.",
            refs=[seal.ref],
        )
    ciphertext = sealed.decoded(seal.envelope.ciphertext, None, seal.ref)
    nonce = sealed.decoded(seal.envelope.nonce, sealed.NONCE_BYTES, seal.ref)
    text = _decrypt(ciphertext, sealed.associated_data(message), nonce, key)
    if text is None:
        raise _tampered(seal.ref)
    record = _record(seal.ref, text)
    if sealed.commitment(message, record) != seal.commitment:
        raise _tampered(seal.ref)
    return record


def _record(ref: str, text: bytes) -> OpenedRecord:
    """The fields that `seal` wrote, in its own spelling; whoever had the key and wrote otherwise is refused."""
    try:
        raw = cast("dict[str, Any]", json.loads(text))
        calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in raw["toolCalls"])
        record = OpenedRecord(ref, raw["content"], raw["salt"], calls, raw["name"])
        right = sealed.canonical({**sealed.content_fields(record), "salt": record.salt}, ref) == text
    except (ValueError, KeyError, TypeError):
        right, record = False, None
    if record is None or not right:
        raise sealed.malformed(ref, "what is sealed in it is no message")
    return record


def _tokens(message: Message, count: Callable[[str], int]) -> int:
    """What the sealed parts cost as they will go out; ids and framing are in the clear and counted by the server."""
    sent = sendable(message)
    texts = (sent.content, sent.name, *(text for call in sent.tool_calls for text in (call.name, call.arguments)))
    return sum(count(text) for text in texts if text)


def _tampered(ref: str) -> HaversackError:
    return HaversackError(
        "sealed_tampered",
        f"{ref} was changed after it was sealed.",
        "Restore it from a copy, or leave it out of the history.",
        refs=[ref],
    )


def _encrypt(text: bytes, clear: bytes, nonce: bytes, key: bytes) -> bytes:
    try:
        from nacl import bindings  # noqa: PLC0415 - an extra, and only those who seal load it
    except ImportError:
        raise _no_library() from None
    return bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(text, clear, nonce, key)


def _decrypt(ciphertext: bytes, clear: bytes, nonce: bytes, key: bytes) -> bytes | None:
    """None when any of it is not as it was sealed."""
    try:
        from nacl import bindings, exceptions  # noqa: PLC0415 - as above
    except ImportError:
        raise _no_library() from None
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(ciphertext, clear, nonce, key)
    except exceptions.CryptoError:
        return None


def _no_library() -> HaversackError:
    return HaversackError(
        "sealed_library_missing",
        "Sealing needs PyNaCl, which is not installed.",
        "Install haversack with the extra `sealed`.",
    )


_random = secrets.token_bytes
