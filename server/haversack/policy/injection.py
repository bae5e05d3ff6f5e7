"""Text that gives orders to a model instead of speaking about the project."""

from __future__ import annotations

import re
import unicodedata

# A role name with a colon (`system:`) is ordinary YAML and stays.
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+|my\s+)?"
    r"(?:previous|prior|above|earlier|preceding|system)\s+(?:instructions?|prompts?|messages?|rules?|context)\b"
    r"|\b(?:drop|abandon|forget|ignore)\s+your\s+(?:current\s+|original\s+)?task\b"
    r"|\byou\s+are\s+now\s+(?:a|an|in|the)\b[^.\n]*"
    r"|\b(?:reveal|print|repeat|show)\s+(?:me\s+)?(?:your|the)\s+system\s+(?:prompt|message)\b",
    re.IGNORECASE,
)
_CHAT_MARKS = re.compile(
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id)\|>"
    r"|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
_NEUTRAL = "[instruction-like text left out]"


def reads_like_orders(text: str) -> bool:
    """Whether the text holds phrases that speak to a model. Served all the same: it may be what the question is on."""
    return _may_hold_orders(text) and _ORDERS.search(text) is not None


def _may_hold_orders(text: str) -> bool:
    """False where words are missing without which no phrase is whole: looking for them takes a tenth of the time.

    Letters beyond ASCII can match ASCII ones when case is ignored (`ſ` is an `s`), so only plain text is passed over.
    """
    if not text.isascii():
        return True
    lower = text.lower()
    if "you" in lower and "now" in lower:
        return True
    if "task" in lower and any(verb in lower for verb in ("drop", "abandon", "forget", "ignore")):
        return True
    if not any(noun in lower for noun in ("prompt", "message", "instruction", "rule", "context")):
        return False
    return "system" in lower or any(verb in lower for verb in ("ignore", "disregard", "forget", "override"))


def neutral(text: str) -> tuple[str, bool]:
    """The text without phrases that give orders to a model and without marks of chat templates; whether it had any."""
    n_found = 0
    for phrases in (_ORDERS, _CHAT_MARKS):
        plain, places = _plain(text)
        kept: list[str] = []
        end = 0
        for found in phrases.finditer(plain):
            start = places[found.start()] if places else found.start()
            kept += (text[end:start], _NEUTRAL)
            end = places[found.end() - 1] + 1 if places else found.end()
        n_found += len(kept) // 2
        text = "".join((*kept, text[end:]))
    return text, n_found > 0


# Soft hyphen, zero-width characters, directional marks, embeddings, overrides and isolates, tag characters.
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


def _plain(text: str) -> tuple[str, list[int]]:
    """The text as a model may read it: without invisible characters, wide and styled letters as plain ones.

    With the place in the text of each character, none where they are the same: what gives no order stays as it is.
    """
    if text.isascii():
        return text, []
    plain: list[str] = []
    places: list[int] = []
    for at, letter in enumerate(text):
        read = letter if letter.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", letter))
        plain.append(read)
        places += [at] * len(read)
    return "".join(plain), places
