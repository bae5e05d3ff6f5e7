"""Conversations in the form of a provider's API, from and to the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from haversack.formats import READERS, WRITERS, HistoryFormat, anthropic
from haversack.lsp.conversation import ProviderMessages
from haversack.types import InvalidRequest, Message

PATH = "params.providerHistory"


def read(given: ProviderMessages | None) -> tuple[Message, ...]:
    """Our messages; () for none. Raises `InvalidRequest` with the path of what does not fit."""
    if given is None:
        return ()
    form = _form(given.format)
    # The wire's arrays are tuples by now; a provider's message is read as the JSON that it is.
    whole = {"messages": list(given.messages)}
    if given.system is not None:
        if form is not HistoryFormat.ANTHROPIC:
            message = f"{PATH}.system: only {HistoryFormat.ANTHROPIC.value} has it beside the messages."
            raise InvalidRequest(message, "Make it the first message.")
        whole["system"] = cast("list[object]", given.system)
    return READERS[form](whole, PATH)


def written(messages: Sequence[Message], as_given: ProviderMessages | None) -> ProviderMessages | None:
    """`messages` in the form that the request's history came in; None for our own."""
    if as_given is None:
        return None
    form = _form(as_given.format)
    system = anthropic.system(messages) if form is HistoryFormat.ANTHROPIC else []
    return ProviderMessages(form.value, tuple(WRITERS[form](messages)), system or None)


def _form(name: str) -> HistoryFormat:
    try:
        return HistoryFormat(name)
    except ValueError:
        known = ", ".join(each.value for each in HistoryFormat)
        raise InvalidRequest(f"{PATH}.format: expected one of {known}.", "Or send our own form in `history`.") from None
