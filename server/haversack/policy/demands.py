"""Whether a model may serve a turn, by what is known of it: availability, locality, capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from haversack.policy import catalogue
from haversack.policy.catalogue import full_name
from haversack.types import Capability, Marked, Model, Policy, RemoteMode, Request, RoutingRule, Settings, Skip

# What a turn can do without when the policy allows it: the answer comes later, is less thought through, or leaves no
# memory behind. Without the others it fails (tools, images), cannot be read (JSON) or is refused (a system message).
OPTIONAL = frozenset({Capability.STREAMING, Capability.REASONING, Capability.MEMORY})

# How a model can fail that was tried, as the client reports it.
FAILURES = {
    "rate_limited": "Its provider limited the rate on an earlier try.",
    "provider_unavailable": "Its provider could not be reached on an earlier try.",
    "request_timeout": "It did not answer in time on an earlier try.",
}


@dataclass(frozen=True, slots=True)
class Barrier:
    """Why no remote model may serve. `held` counts required items that are restricted."""

    code: str
    why: str
    held: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a model loses, None when it may serve. With `degraded`, it may do so without these if no other can."""

    loss: Skip | None = None
    degraded: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class Demands:
    """Everything that is asked of a model but to have room for the prompt. The first thing it fails is why it loses."""

    request: Request
    policy: Policy
    settings: Settings
    barrier: Barrier | None
    wanted: tuple[Capability, ...]
    gate: tuple[Capability, ...]  # of these, what a rule insists on
    must_be_known: bool  # a policy names the models: a slip in a name must not pass for a model

    def judge(self, name: str, model: Model) -> Judgement:
        """`name` is how the route writes it."""
        found = self._unusable(name, model)
        if found is not None:
            return Judgement(Skip(full_name(model), *found))
        lacking = self._lacking(model)
        if not lacking:
            return Judgement()
        loss = Skip(full_name(model), "missing_capability", f"It lacks {' and '.join(lacking)}.")
        may_do_without = self.policy.allow_degraded and all(
            each in OPTIONAL and each not in self.gate for each in lacking
        )
        return Judgement(loss, lacking if may_do_without else ())

    def _unusable(self, name: str, model: Model) -> tuple[str, str] | None:
        """Code and sentence of what keeps the model from serving at all."""
        if self.must_be_known and not catalogue.is_known(name, self.policy.models, self.settings.custom_windows):
            return "unknown_model", "It is not in the catalogue; declare it under `models` in the policy."
        providers = self.request.providers
        if providers is not None and model.requires_key and model.provider not in providers:
            return "missing_credentials", f"It needs a key of {model.provider}, and the client holds none."
        for failed in self.request.failed:
            if _is_same(failed.model, model, self.settings):
                return failed.reason, FAILURES.get(failed.reason, "It failed on an earlier try.")
        if self.barrier is not None and not model.local:
            return self.barrier.code, f"It is a remote model, and {self.barrier.why}."
        return None

    def _lacking(self, model: Model) -> tuple[Capability, ...]:
        """Of a model that nothing is known of, only what a rule insists on: the user's own choice is believed."""
        return tuple(
            each
            for each in self.wanted
            if each not in model.capabilities and (model.capabilities_known or each in self.gate)
        )


def barrier(request: Request, marked: Sequence[Marked], policy: Policy, rule: RoutingRule | None) -> Barrier | None:
    """What keeps the turn from remote models. Restricted content that may be dropped is dropped instead."""
    held = sum(1 for item in marked if item.required and item.restricted and not item.refused)
    if held:
        why = "1 required item is restricted" if held == 1 else f"{held} required items are restricted"
        return Barrier("local_only", why, held)
    if request.local_only:
        return Barrier("local_only", "the request asks for local models only")
    if policy.local_only:
        return Barrier("local_only", "the policy allows local models only")
    if rule is not None and rule.local_only:
        return Barrier("local_only", f"rule {rule.name} allows local models only")
    if policy.remote_mode is RemoteMode.DENY:
        return Barrier("remote_denied", "the policy denies all remote models")
    return None


def _is_same(name: str, model: Model, settings: Settings) -> bool:
    other = catalogue.resolve(name, settings)
    return (other.provider, other.name.lower()) == (model.provider, model.name.lower())
