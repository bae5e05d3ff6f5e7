"""The VS Code extension's package.json says of every setting what the server's table says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from haversack import package_settings
from haversack.config import SETTINGS, Setting
from haversack.types import Settings

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "editor-client/vscode/package.json"
NAMES = [setting.name for setting in SETTINGS]


def manifest() -> dict[str, Any]:
    return json.loads(PACKAGE.read_text(encoding="utf-8"))


def test_the_written_file_is_what_is_made_now() -> None:
    """Else run `python -m haversack.config --package-json editor-client/vscode/package.json`."""
    written = PACKAGE.read_text(encoding="utf-8")
    assert written == package_settings.package(written)


def test_the_page_and_the_package_name_the_same_settings() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    made = manifest()["contributes"]["configuration"][package_settings.MADE_GROUP]["properties"]
    assert set(re.findall(r"^## `(haversack\.[\w.]+)`$", page, re.MULTILINE)) == set(made)


def test_what_could_send_text_out_is_restricted_in_untrusted_workspaces() -> None:
    restricted = set(manifest()["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    assert {f"haversack.{setting.name}" for setting in SETTINGS if setting.guarded} <= restricted
    assert {"haversack.path", "haversack.interpreter"} <= restricted
    endpoints = {f"haversack.{name}" for name in NAMES if name.endswith(".endpoint")}
    assert endpoints <= restricted


@pytest.mark.parametrize("setting", SETTINGS, ids=NAMES)
def test_the_default_is_the_one_the_server_takes(setting: Setting) -> None:
    value = package_settings.default(setting)
    taken = setting.read(value) if value is not None else None
    assert taken == getattr(Settings(), setting.field)


@pytest.mark.parametrize("setting", SETTINGS, ids=NAMES)
def test_the_server_reads_what_the_editor_allows_and_no_more(setting: Setting) -> None:
    schema = setting.read.schema
    for value in good(schema):
        setting.read(value)
    for value in bad(schema):
        with pytest.raises(ValueError):
            setting.read(value)


def good(schema: Mapping[str, Any]) -> list[object]:
    named = [{"m": each} for each in schema.get("additionalProperties", {}).get("examples", ["8k"])]
    by_type: dict[str, list[object]] = {"boolean": [True, False], "array": [[], ["a/"]], "object": [{}, *named]}
    values = by_type.get(schema["type"], [])
    return [*values, *schema.get("enum", []), *(schema[each] for each in ("minimum", "maximum") if each in schema)]


def bad(schema: Mapping[str, Any]) -> list[object]:
    values: list[object] = [object()]
    if "minimum" in schema:
        values += [schema["minimum"] - 1, schema["maximum"] + 1]
    if "enum" in schema:
        values.append("none of them")
    if "maxLength" in schema:
        values.append("x" * (schema["maxLength"] + 1))
    if schema["type"] == "array":
        values.append([1])
    return values
