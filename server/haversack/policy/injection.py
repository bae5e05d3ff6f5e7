"""Text that gives orders to a model instead of speaking about the project."""

from __future__ import annotations

import re

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
    return _ORDERS.search(text) is not None


def neutral(text: str) -> tuple[str, bool]:
    """The text without phrases that give orders to a model and without marks of chat templates; whether it had any."""
    changed, n_orders = _ORDERS.subn(_NEUTRAL, text)
    changed, n_marks = _CHAT_MARKS.subn(_NEUTRAL, changed)
    return changed, n_orders + n_marks > 0
