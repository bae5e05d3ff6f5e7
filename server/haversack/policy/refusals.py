"""The errors of a route that no model can serve; each says of every model that was tried why it lost."""

from __future__ import annotations

from collections.abc import Sequence

from haversack.policy.catalogue import full_name
from haversack.policy.demands import Barrier
from haversack.types import HaversackError, Model, Route, Skip

_REMEDIES = {
    "unknown_model": "Declare the model under `models` in the policy, or correct its name.",
    "missing_credentials": "Give the client a key for this provider, or choose another model.",
    "missing_capability": "Choose a model that has it, ask for less, or set `allowDegraded` in the policy.",
    "rate_limited": "Try again later, or choose another model.",
    "provider_unavailable": "Try again later, or choose another model.",
    "request_timeout": "Try again, or choose another model.",
}


def refusal(
    tried: Sequence[Route], skipped: Sequence[Skip], barrier: Barrier | None, cause: HaversackError | None
) -> HaversackError:
    """The error when none of the routes tried can serve. `cause` is what was raised for the first, if anything was."""
    details = [{"model": each.model, "code": each.code, "reason": each.reason} for each in skipped]
    first = tried[0]
    if barrier is not None and first.override_used and not first.model.local:
        return _not_allowed(first.model, barrier, details)
    if barrier is not None and not first.override_used and any(not route.model.local for route in tried):
        return HaversackError(
            "local_model_required",
            f"Only a local model may serve, as {barrier.why}, and none can. {_listed(skipped)}",
            "Add a local model to the route, or take the restricted files out of the request."
            if barrier.held
            else "Add a local model to the route.",
            skipped=details,
            required_restricted=barrier.held,
        )
    if len(skipped) == 1:
        own = cause or HaversackError(
            skipped[0].code, f"{skipped[0].model} cannot serve. {skipped[0].reason}", _REMEDIES.get(skipped[0].code, "")
        )
        own.details["skipped"] = details
        return own
    return HaversackError(
        "fallback_exhausted",
        f"None of the {len(skipped)} models of the route can serve. " + _listed(skipped),
        "Add a model to the route that can, or mend what keeps the others from it.",
        skipped=details,
    )


def _not_allowed(model: Model, barrier: Barrier, details: Sequence[object]) -> HaversackError:
    return HaversackError(
        "override_not_allowed",
        f"{full_name(model)} is a remote model, and {barrier.why}.",
        "Choose a local model, or take the restricted files out of the request."
        if barrier.held
        else "Choose a local model.",
        required_restricted=barrier.held,
        skipped=details,
    )


def _listed(skipped: Sequence[Skip]) -> str:
    return " ".join(f"{each.model}: {each.reason}" for each in skipped)
