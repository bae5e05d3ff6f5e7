"""Conversations as providers write them: OpenAI's chat messages and Anthropic's, read into ours and written back.

Reading is strict about what pairs calls with results and lenient about the rest: a part of a kind that is not known
becomes a line that names it, since losing the whole conversation over one part helps nobody. Nothing here counts
tokens of text; a picture costs what the provider's documents say of a large one, since its size is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from haversack.formats import anthropic, openai
from haversack.formats.parts import Json
from haversack.types import Message


class HistoryFormat(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


READERS: dict[HistoryFormat, Callable[[object, str], tuple[Message, ...]]] = {
    HistoryFormat.OPENAI: openai.read,
    HistoryFormat.ANTHROPIC: anthropic.read,
}
"""A list of messages (or the object that holds it) to ours; raises `InvalidRequest` with the path of what is wrong."""

WRITERS: dict[HistoryFormat, Callable[[Sequence[Message]], list[Json]]] = {
    HistoryFormat.OPENAI: openai.write,
    HistoryFormat.ANTHROPIC: anthropic.write,
}
"""Our messages as the provider's list."""
