"""How raw values from editors become a valid `Settings`.

Nothing a user writes raises here: what cannot be used is replaced by the default and reported as a `Problem`.
`python -m haversack.config` prints `docs/settings.md`; with `--package-json FILE` it writes the settings into the
package.json of the VS Code extension.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from haversack.package_settings import package
from haversack.settings_row import Scope, Setting
from haversack.settings_table import SETTINGS
from haversack.settings_values import is_web_address
from haversack.types import Problem, Settings
from haversack_index.walk import WalkRules

__all__ = ["SETTINGS", "Layer", "Scope", "Setting", "merge", "page", "parse", "walk_rules"]


@dataclass(frozen=True, slots=True)
class Layer:
    """Raw settings of one origin: nested or dotted keys, with or without the leading `haversack`."""

    scope: Scope
    raw: Mapping[str, Any]


def parse(raw: Mapping[str, Any]) -> tuple[Settings, tuple[Problem, ...]]:
    """Settings from one raw mapping, taken as the user's own."""
    return merge((Layer(Scope.USER, raw),))


def merge(layers: Sequence[Layer], *, trusted: bool = True) -> tuple[Settings, tuple[Problem, ...]]:
    """Settings from layers, weakest first. From an untrusted workspace nothing is taken that could send text out."""
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for layer in layers:
        for name, value in _flatten(layer.raw):
            setting = _BY_NAME.get(name)
            if setting is None:
                problems.append(_problem("unknown_setting", f"haversack.{name[:80]} is not a setting.", _nearest(name)))
                continue
            if value is None:  # editors send null for what is not set
                continue
            refusal = _refusal(setting, layer.scope, trusted)
            if refusal:
                problems.append(_problem("setting_refused", f"haversack.{name}: {refusal}", "Set it as a user."))
                continue
            try:
                read = setting.read(value)
            except ValueError:
                problems.append(_invalid(setting, value))
                continue
            if setting.field in _GROWING:
                earlier = cast("tuple[str, ...]", values.get(setting.field, ()))
                read = (*earlier, *(item for item in cast("tuple[str, ...]", read) if item not in earlier))
            values[setting.field] = read
    _settle_weights(values, problems)
    _settle_endpoints(values, problems)
    return Settings(**cast("dict[str, Any]", values)), tuple(problems)


def walk_rules(settings: Settings) -> WalkRules:
    """Which files these settings let in: the same for indexing, watching and mentions."""
    return WalkRules(
        include_hidden=settings.include_hidden,
        max_file_size=settings.max_file_size,
        allow_secret_names=settings.include_secret_names,
    )


_BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in SETTINGS}
# Privacy lists are joined over the layers, so that no later layer can loosen an earlier one.
_GROWING = frozenset({"restricted_paths", "remote_blocked_paths"})


# --- layers and cross checks --------------------------------------------------------------------------------------


# No setting has more parts in its name; deeper nesting is junk, and could exhaust the stack.
_MAX_DEPTH = 4


def _flatten(raw: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in raw.items():
        name = f"{prefix}{key}"
        if not prefix and name.startswith("haversack."):
            name = name.removeprefix("haversack.")
        if not prefix and name == "haversack" and isinstance(value, Mapping) and depth < _MAX_DEPTH:
            yield from _flatten(cast("Mapping[str, Any]", value), "", depth + 1)
        elif isinstance(value, Mapping) and value and depth < _MAX_DEPTH and name not in _BY_NAME:
            yield from _flatten(cast("Mapping[str, Any]", value), f"{name}.", depth + 1)
        elif not (isinstance(value, Mapping) and not value):
            yield name, value


def _refusal(setting: Setting, scope: Scope, trusted: bool) -> str:
    if scope not in setting.scopes:
        return f"cannot be set in {'an' if scope.value[0] in 'aeiou' else 'a'} {scope.value}."
    if setting.guarded and scope is Scope.WORKSPACE and not trusted:
        return "not taken from a workspace that is not trusted, since it could send text out or steer the model."
    return ""


def _settle_weights(values: dict[str, object], problems: list[Problem]) -> None:
    """One weight alone fixes the other; two zeros would rank nothing."""
    vector, text = values.get("vector_weight"), values.get("text_weight")
    if vector == 0 and text == 0:
        problems.append(
            _problem(
                "invalid_setting",
                "haversack.hybridSearch.vectorWeight and textWeight are both 0: nothing would rank. Using the default.",
                "Set at least one above 0.",
            )
        )
        del values["vector_weight"], values["text_weight"]
    elif isinstance(vector, float) and text is None:
        values["text_weight"] = 1 - vector
    elif isinstance(text, float) and vector is None:
        values["vector_weight"] = 1 - text


def _settle_endpoints(values: dict[str, object], problems: list[Problem]) -> None:
    """A server that embeds needs a web address and a model; without them the built-in table does the work."""
    embedder = values.get("embedder")
    if embedder not in ("ollama", "openai", "model2vec"):
        return
    endpoint = str(values.get("embedder_endpoint", ""))
    missing = ""
    if embedder == "model2vec":
        if not endpoint:
            missing = "needs a folder in haversack.embedding.endpoint"
    elif not is_web_address(endpoint):
        missing = "needs an http or https address in haversack.embedding.endpoint"
    elif not values.get("embedder_model"):
        missing = "needs haversack.embedding.model"
    if missing:
        problems.append(
            _problem(
                "invalid_setting",
                f"haversack.embedding.provider {embedder!r} {missing}. Using 'static'.",
                "Set it, or choose the provider 'static'.",
            )
        )
        values["embedder"] = "static"


def _invalid(setting: Setting, value: object) -> Problem:
    # As it stands in the user's settings file.
    shown = "the value" if setting.hidden else json.dumps(value, ensure_ascii=False, default=repr)
    # Long enough to recognise the value, short enough for a message box.
    shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
    return _problem(
        "invalid_setting",
        f"haversack.{setting.name}: {shown} is not allowed and is ignored (default: {setting.default}).",
        f"Allowed: {setting.allowed}.",
    )


def _nearest(name: str) -> str:
    wanted = name.lower().rsplit(".", 1)[-1]
    for known in _BY_NAME:
        if known.lower().rsplit(".", 1)[-1] == wanted:
            return f"Did you mean haversack.{known}?"
    return "See docs/settings.md for the settings there are."


def _problem(code: str, message: str, remedy: str) -> Problem:
    return Problem("settings", code, message, remedy)


# --- the page -----------------------------------------------------------------------------------------------------


def page() -> str:
    """`docs/settings.md`."""
    lines = [
        "# Settings",
        "",
        "<!-- Made by `python -m haversack.config`; a test fails when it is stale. -->",
        "",
        "Every name comes after `haversack.`. Editors send them as nested objects or with dotted names, both work.",
        "A value that is not allowed is replaced by the default and reported, never fatal.",
        "",
        "Layers, weakest first: default, user, workspace, request. Privacy lists add up over the layers; for the rest",
        "the later layer wins. Settings marked *trusted* are not taken from a workspace that the user has not trusted.",
        "",
        "| setting | default | allowed | layers |",
        "| --- | --- | --- | --- |",
    ]
    for setting in SETTINGS:
        scopes = ", ".join(scope.value for scope in setting.scopes) + (" (*trusted*)" if setting.guarded else "")
        lines.append(f"| `{setting.name}` | {setting.default} | {setting.allowed} | {scopes} |")
    for setting in SETTINGS:
        lines += [
            "",
            f"## `haversack.{setting.name}`",
            "",
            setting.description,
            "",
            f"Takes effect in {setting.effect}.",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--package-json"]:
        target = Path(sys.argv[2])
        target.write_text(package(target.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(page(), end="")
