"""Names of providers that a client holds keys for. The keys themselves are never taken: not sent, logged or stored."""

from __future__ import annotations

import re

from haversack.types import InvalidRequest

# Longer than the name of any service, shorter than the keys in use.
LONGEST_NAME = 32
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
# What keys of the larger services begin with.
_KEY_HEADS = ("sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "aiza", "ghp_", "gho_", "github_pat_", "hf_", "akia", "eyj")
# A run of letters and digits like this is drawn by lot; names of services are words with a number at their end at most.
_DRAWN = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{16,}")


def provider_name(text: str, place: str) -> str:
    """The name in lower case. Raises InvalidRequest for anything else, and never repeats it: it may be a key."""
    name = text.strip().lower()
    if len(name) > LONGEST_NAME or name.startswith(_KEY_HEADS) or _DRAWN.search(name):
        raise InvalidRequest(
            f"{place}: this looks like a key, and keys are never taken.", "Give the provider's name, such as `openai`."
        )
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"{place}: this is no provider's name.", "Give a name such as `openai`.")
    return name
