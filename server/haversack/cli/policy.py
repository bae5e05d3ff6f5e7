"""`haversack policy`: the merged policy of all layers, and everything that is wrong with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from importlib import resources

from rich.console import Console

from haversack.cli import render
from haversack.cli.arguments import FAILED, OK, Options
from haversack.cli.opening import opened, run_async
from haversack.policy.findings import Finding, Severity
from haversack.policy.layers import Merged
from haversack.types import DeclaredModel, Policy, RoutingRule

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFORMATION: "dim"}


def run(options: Options) -> int:
    if options.schema:
        sys.stdout.write((resources.files("haversack.policy") / "policy.schema.json").read_text(encoding="utf-8"))
        return OK
    return run_async(_policy, options)


async def _policy(options: Options, console: Console) -> int:
    async with opened(options) as session:
        merged = await session.read_policy()
    if options.json:
        found = [_finding(each) for each in merged.findings]
        result = {"layers": merged.layers, "policy": document(merged.policy), "findings": found}
        json.dump(result, sys.stdout, ensure_ascii=False)
        print()
    else:
        _print(console, merged)
    return FAILED if any(each.severity is Severity.ERROR for each in merged.findings) else OK


def document(policy: Policy) -> dict[str, object]:
    """A policy as a policy file would write it; `closed` says what no file can: that a layer could not be read."""
    written: dict[str, object] = {
        "version": 1,
        "default": {"model": policy.default.model, "fallbacks": policy.default.fallbacks} if policy.default else None,
        "rules": [_written(rule) for rule in policy.rules],
        "models": [_written(model) for model in policy.models],
        "allowDegraded": policy.allow_degraded,
        "localOnly": policy.local_only,
        "privacy": {
            "restrictedPaths": policy.restricted_paths,
            "remote": {"mode": policy.remote_mode, "blockedPaths": policy.blocked_paths},
        },
        "documents": {
            "privilegedPaths": policy.privileged_paths,
            "strategyPaths": policy.strategy_paths,
            "tenants": dict(policy.tenants),
        },
        "records": {"keepRestricted": policy.record_restricted},
        "closed": policy.closed,
    }
    return {key: value for key, value in written.items() if value is not None}


# Fields whose key is not their name in camel case.
_KEYS = {"requires": "requiresCapabilities"}


def _written(part: RoutingRule | DeclaredModel) -> dict[str, object]:
    """Every key that says something."""
    found: dict[str, object] = {}
    for field in fields(part):
        value: object = getattr(part, field.name)
        head, *rest = field.name.split("_")
        if value not in ("", (), None) and not (isinstance(part, DeclaredModel) and value == 0):
            found[_KEYS.get(field.name, head + "".join(word.capitalize() for word in rest))] = value
    return found


def _finding(finding: Finding) -> dict[str, object]:
    start, end = finding.range.start, finding.range.end
    return {
        "layer": finding.layer,
        "severity": finding.severity.name.lower(),
        "code": finding.code,
        "message": finding.message,
        "remedy": finding.remedy,
        "place": finding.place,
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        },
    }


def _print(console: Console, merged: Merged) -> None:
    policy = merged.policy
    if not merged.layers:
        _line(console, "No policy: neither the user nor this folder has a file. Models are chosen by the settings.")
        return
    _line(console, f"Policy of {len(merged.layers)} layers: {', '.join(merged.layers)}", "bold")
    if policy.closed:
        _line(console, "A layer can't be read whole, so every file counts as restricted.", "bold red")
    if policy.local_only:
        _line(console, "Only local models may serve.")
    _line(console, f"Remote models: {policy.remote_mode.value}")
    _line(console, f"Default: {_route(policy.default.model, policy.default.fallbacks) if policy.default else 'none'}")
    for rule in policy.rules:
        _line(console, f"Rule {rule.name}: {_conditions(rule)} → {_route(rule.model, rule.fallbacks)}")
    for model in policy.models:
        _line(console, f"Model {model.name}")
    tenants = ((f"Of tenant {name}", globs) for name, globs in policy.tenants)
    for title, globs in (
        ("Restricted", (*policy.restricted_paths, *policy.blocked_paths)),
        ("Privileged", policy.privileged_paths),
        ("For people only", policy.strategy_paths),
        *tenants,
    ):
        if globs:
            _line(console, f"{title}: {', '.join(globs)}")
    _print_findings(console, merged.findings)


def _route(model: str, fallbacks: Sequence[str]) -> str:
    return ", then ".join((model, *fallbacks))


def _conditions(rule: RoutingRule) -> str:
    parts = [f"priority {rule.priority}"]
    if rule.intent is not None:
        parts.append(f"to {rule.intent.value}")
    if rule.paths:
        parts.append(f"on {', '.join(rule.paths)}")
    if rule.local_only:
        parts.append("local only")
    return ", ".join(parts)


def _print_findings(console: Console, findings: Sequence[Finding]) -> None:
    if not findings:
        _line(console, "Nothing is wrong with it.", "green")
    for each in sorted(findings, key=lambda finding: finding.severity):
        where = f"{each.layer}, line {each.range.start.line + 1}"
        _line(console, f"{each.severity.name.lower()} {each.code} ({where}): {each.message}", _STYLES[each.severity])
        _line(console, f"    {each.remedy}")


def _line(console: Console, text: str, style: str | None = None) -> None:
    console.print(render.one_line(text), style=style, markup=False, highlight=False, soft_wrap=True)
