"""Settings as the policy lets them be: what text may go to services that are not prompts' models."""

from __future__ import annotations

from dataclasses import replace

from haversack.outbound import is_on_this_machine
from haversack.policy.catalogue import is_forwarded
from haversack.policy.privacy import private_patterns
from haversack.types import Policy, RemoteMode, Settings

# Embedders that send text to an address.
SERVICES = ("ollama", "openai")


def confined(settings: Settings, policy: Policy, *, local_only: bool = False) -> Settings:
    """With the policy's private paths, and those of documents that agents may not have, among the settings' own, and
    without services elsewhere where it, or
    a request that wants nothing to leave this machine (`local_only`), rules them out.

    The built-in embedder then does the work, search words come from the question alone, and old messages become a
    digest in their own words.
    """
    # What no agent may have is nothing for a service either.
    kept_back = (*policy.privileged_paths, *policy.strategy_paths)
    patterns = tuple(dict.fromkeys((*private_patterns(settings, policy), *kept_back)))
    settings = replace(settings, restricted_paths=patterns)
    if not (local_only or policy.closed or policy.local_only or policy.remote_mode is RemoteMode.DENY):
        return settings
    if embeds_elsewhere(settings):
        settings = replace(settings, embedder="static", embedder_endpoint="", embedder_model="")
    if settings.terms_endpoint and _is_elsewhere(settings.terms_endpoint, settings.terms_model):
        settings = replace(settings, terms_endpoint="", terms_model="")
    if settings.summarizer_endpoint and _is_elsewhere(settings.summarizer_endpoint, settings.summarizer_model):
        settings = replace(settings, summarizer_endpoint="", summarizer_model="")
    return settings


def may_embed(made: Settings, now: Settings) -> bool:
    """Whether an embedder that was made under some settings may be asked under those that count now."""
    if not embeds_elsewhere(made):
        return True
    if not embeds_elsewhere(now) or made.embedder_endpoint != now.embedder_endpoint:
        return False
    # It withholds the files that it was told of, and no others.
    return _private(now) <= _private(made)


def _private(settings: Settings) -> set[str]:
    return {*settings.restricted_paths, *settings.remote_blocked_paths}


def embeds_elsewhere(settings: Settings) -> bool:
    """Whether text to embed leaves this machine."""
    return settings.embedder in SERVICES and _is_elsewhere(settings.embedder_endpoint, settings.embedder_model)


def _is_elsewhere(endpoint: str, model: str) -> bool:
    return not is_on_this_machine(endpoint) or is_forwarded(model)
