"""Reports of what cannot happen: logged once and survived in use, fatal under test."""

from __future__ import annotations

import logging
import os
import threading

_log = logging.getLogger(__name__)
_seen: set[str] = set()
_lock = threading.Lock()
# A bug in a loop over data must not fill memory with messages that differ in a number.
MAX_SEEN = 1_000


class Impossible(AssertionError):
    """Raised by `report` when `HAVERSACK_PANIC` is set, as the tests do."""


def report(message: str, *context: object) -> None:
    """Say that an invariant is broken. `message` is a constant text; `context` is shown by type, never by value.

    Values stay out of the log since they may hold text of the user's files.
    """
    shown = f"{message} ({', '.join(type(item).__name__ for item in context)})" if context else message
    if os.environ.get("HAVERSACK_PANIC"):
        raise Impossible(shown)
    with _lock:
        if message in _seen or len(_seen) >= MAX_SEEN:
            return
        _seen.add(message)
    _log.error("bug: %s", shown, stack_info=True)
