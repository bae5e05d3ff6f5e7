"""The settings about inline completion: how much a prompt at a cursor has of the file, and of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from haversack.settings_row import ANYWHERE, Setting, reads
from haversack.settings_values import read_flag, whole_number

# The rows of `templates.fim`, which a test compares.
FAMILY_NAMES = (
    "deepseek",
    "codellama",
    "starcoder",
    "starcoder2",
    "codestral",
    "qwen",
    "codeqwen",
    "codegemma",
    "granite-code",
    "granite4",
    "stable-code",
    "seed-coder",
    "codegeex",
    "mellum",
)
LONGEST_TEMPLATE = 1_000
EXAMPLES = ("qwen", "<pre>{prefix}<suf>{suffix}<mid>")


@reads(type="object", additionalProperties={"type": "string", "maxLength": LONGEST_TEMPLATE, "examples": EXAMPLES})
def read_families(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("not an object")
    given = cast("Mapping[object, object]", value)
    for part, form in given.items():
        if not isinstance(part, str) or not part.strip() or not isinstance(form, str) or len(form) > LONGEST_TEMPLATE:
            raise ValueError(part)
        fields = sorted(re.findall(r"\{(\w*)\}", form))
        if form not in FAMILY_NAMES and fields != ["prefix", "suffix"]:
            raise ValueError(form)
    return {str(part): str(form) for part, form in given.items()}


FIM: tuple[Setting, ...] = (
    Setting(
        "fim.prefixTokens",
        "fim_prefix_tokens",
        whole_number(0, 100_000),
        "2000",
        "0 to 100,000 tokens",
        ANYWHERE,
        "How much of the text before the cursor a prompt for inline completion has, in whole lines. What the text "
        "after the cursor leaves unused is added.",
        "`fim.window`: where the prefix begins",
    ),
    Setting(
        "fim.suffixTokens",
        "fim_suffix_tokens",
        whole_number(0, 100_000),
        "500",
        "0 to 100,000 tokens",
        ANYWHERE,
        "How much of the text after the cursor it has. What the text before the cursor leaves unused is added.",
        "`fim.window`: where the suffix ends",
    ),
    Setting(
        "fim.contextTokens",
        "fim_context_tokens",
        whole_number(0, 100_000),
        "1000",
        "0 to 100,000 tokens",
        ANYWHERE,
        "How much it has of other files, and of the file's own imports where they are above the prefix. Every token is "
        "read again at each pause of typing, so more costs time; at 0 a completion knows its own file alone.",
        "`fim.complete`: the share of snippets",
    ),
    Setting(
        "fim.replyTokens",
        "fim_reply_tokens",
        whole_number(1, 8_192),
        "256",
        "1 to 8,192 tokens",
        ANYWHERE,
        "What of the model's window is left to the completion itself.",
        "`fim.complete`: the room for the prompt in a small window",
    ),
    Setting(
        "fim.definitions",
        "fim_definitions",
        read_flag,
        "true",
        "`true` or `false`",
        ANYWHERE,
        "Whether a completion is shown the headers of what its imports, the files beside it and the types at the "
        "cursor define.",
        "`fim.crossfile`: signatures",
    ),
    Setting(
        "fim.similar",
        "fim_similar",
        read_flag,
        "true",
        "`true` or `false`",
        ANYWHERE,
        "Whether it is shown lines of other files that are like those at the cursor.",
        "`fim.crossfile`: windows alike",
    ),
    Setting(
        "fim.recent",
        "fim_recent",
        read_flag,
        "true",
        "`true` or `false`",
        ANYWHERE,
        "Whether files lately edited or looked at are among those it learns from, though nothing imports them.",
        "`fim.crossfile`: the ring",
    ),
    Setting(
        "fim.families",
        "fim_families",
        read_families,
        "none",
        f"part of a model's name → one of {', '.join(f'`{name}`' for name in FAMILY_NAMES)}, "
        "or a template with `{prefix}` and `{suffix}`",
        ANYWHERE,
        "How models that Haversack does not know, or that are served under another name, read a prompt with a hole in "
        "it. All of a template that is not a field is taken for the model's control tokens.",
        "`fim.complete`: the form of the prompt",
    ),
)
