"""The settings as the VS Code extension declares them: the part of its package.json that is made, not written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from haversack.settings_row import Scope, Setting
from haversack.settings_table import SETTINGS

# The extension's own settings, in the first group of its package.json, that start a program.
STARTING = ("haversack.path", "haversack.interpreter")
# Which group of `contributes.configuration` is made here; the one before it holds the extension's own settings.
MADE_GROUP = 1
# Numbers without a default of their own: what counts is the embedder's.
_NULLABLE = ("vector_weight", "text_weight")


def package(written: str) -> str:
    """The text of a package.json with the settings, and the ones an untrusted workspace may not set, made anew."""
    document: dict[str, Any] = json.loads(written)
    document["contributes"]["configuration"][MADE_GROUP] = {"title": "Context", "properties": properties()}
    guarded = [f"haversack.{setting.name}" for setting in SETTINGS if setting.guarded]
    document["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = [*STARTING, *guarded]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def properties() -> Mapping[str, Mapping[str, object]]:
    return {f"haversack.{setting.name}": _property(setting, order) for order, setting in enumerate(SETTINGS)}


def _property(setting: Setting, order: int) -> Mapping[str, object]:
    schema = dict(setting.read.schema)
    if setting.field in _NULLABLE:
        schema["type"] = [schema["type"], "null"]
    hint = {"patternErrorMessage": f"Allowed: {setting.allowed}."} if "pattern" in schema else {}
    return {
        **schema,
        **hint,
        "default": default(setting),
        "scope": _scope(setting),
        "order": order,
        "markdownDescription": f"{setting.description}\n\nAllowed: {setting.allowed}. Default: {setting.default}.",
    }


def default(setting: Setting) -> object:
    """The default as an editor's value, from the text that users read."""
    kind = setting.read.schema["type"]
    text = setting.default
    if setting.field in _NULLABLE:
        return None
    if kind == "boolean":
        return text == "true"
    if kind in ("number", "integer"):
        return float(text) if "." in text else int(text)
    if kind == "array":
        return []
    if kind == "object":
        return {}
    return "" if text.startswith("empty") else text


def _scope(setting: Setting) -> str:
    """Where VS Code lets it be set. The server has one set of settings for all folders, so none is a folder's own."""
    if Scope.WORKSPACE not in setting.scopes:
        return "machine"
    return "machine-overridable" if setting.name.endswith(".endpoint") else "window"
