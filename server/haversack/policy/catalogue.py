"""Model names → what is known about the model. Names are resolved by family, so dated and sized names work too."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from haversack.types import Model, Settings


def resolve(name: str, settings: Settings) -> Model:
    """The model called `name` (`provider/model` or a bare name); for an unknown one, safe guesses with `assumed` set.

    A window the user declared in `models.windows` wins over the catalogue's, and counts as known.
    """
    catalogue = load()
    provider, bare = _split(name.strip())
    family = _match(bare, catalogue)
    if family is None:
        model = replace(catalogue.unknown, name=bare or name, provider=provider or "unknown")
    else:
        model = replace(family, name=bare, provider=provider or family.provider)
    model = replace(model, local=_is_local(provider, bare, catalogue))
    window = _declared_window(name, bare, settings)
    if window is None:
        return model
    return replace(model, window=window, max_output=min(model.max_output, window), assumed=False)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The parsed `models.toml`. `patterns` are normalised names, longest first."""

    families: tuple[Model, ...]
    patterns: tuple[tuple[str, Model], ...]
    unknown: Model
    default_model: str
    assumed_window: int
    local_providers: frozenset[str]


@lru_cache(maxsize=1)
def load() -> Catalogue:
    raw = tomllib.loads((resources.files("haversack.policy") / "models.toml").read_text(encoding="utf-8"))
    default = raw["default"]
    unknown = Model(
        name="",
        provider="unknown",
        family="unknown",
        window=default["window"],
        max_output=default["max_output"],
        tokenizer=default["tokenizer"],
        gather_budget=default["gather_budget"],
        local=False,
        assumed=True,
    )
    families: list[Model] = []
    patterns: dict[str, Model] = {}
    for row in raw["family"]:
        family = Model(
            name=row["name"],
            provider=row["provider"],
            family=row["name"],
            window=row["window"],
            max_output=row["max_output"],
            tokenizer=row["tokenizer"],
            gather_budget=row["gather_budget"],
            local=False,
        )
        families.append(family)
        for pattern in row["match"]:
            patterns[normalise(pattern)] = family
    return Catalogue(
        families=tuple(families),
        patterns=tuple(sorted(patterns.items(), key=lambda item: (-len(item[0]), item[0]))),
        unknown=unknown,
        default_model=default["model"],
        assumed_window=default["window"],
        local_providers=frozenset(raw["local_providers"]),
    )


def normalise(name: str) -> str:
    """One spelling for `Claude 3.5 Sonnet`, `claude-3-5-sonnet` and `claude_3.5_sonnet`; `llama-3` equals `llama3`."""
    spelled = re.sub(r"[\s._-]+", "-", name.lower()).strip("-")
    return re.sub(r"(?<=[a-z])-(?=\d)", "", spelled)


# Hosts put the maker in front of the name: Bedrock's `us.anthropic.claude-…`, Hugging Face's `Meta-Llama-3`.
_MAKER = re.compile(
    r"^(?:ft:)?(?:(?:us|eu|apac|global)-)?"
    r"(?:(?:anthropic|meta|openai|mistral|mistralai|google|deepseek|deepseek-ai|qwen|cohere|models)-)?"
)


def _split(name: str) -> tuple[str, str]:
    """`openrouter/anthropic/claude-3-opus` is served by `openrouter` and called `claude-3-opus`."""
    if "/" not in name:
        return "", name
    parts = [part for part in name.split("/") if part and part != "models"]  # `models/` is part of Gemini's names
    if len(parts) < 2:
        return "", parts[0] if parts else name
    return parts[0].lower(), parts[-1]


def _match(bare: str, catalogue: Catalogue) -> Model | None:
    normal = normalise(bare)
    names = (normal, _MAKER.sub("", normal, count=1))
    for pattern, family in catalogue.patterns:
        for name in names:
            if name.startswith(pattern) and _ends_part(pattern, name[len(pattern) : len(pattern) + 1]):
                return family
    return None


def _ends_part(pattern: str, following: str) -> bool:
    """Whether a part of the name ends after `pattern`: `gpt-4o-mini` is no `gpt-4`, and `o1000` no `o1`.

    A digit after a letter starts a new part, since `normalise` drops the hyphen there (`gpt-4o-2024-08-06`).
    """
    return not following.isalnum() or (following.isdigit() and pattern[-1].isalpha())


def _is_local(provider: str, bare: str, catalogue: Catalogue) -> bool:
    return provider in catalogue.local_providers and not is_forwarded(bare)


def is_forwarded(name: str) -> bool:
    """Whether a service on this machine hands this model's requests on: Ollama does so for tags that say `cloud`."""
    return re.search(r"[:-]cloud$", name.strip().lower()) is not None


def _declared_window(name: str, bare: str, settings: Settings) -> int | None:
    wanted = {name.strip().lower(), bare.lower()}
    for declared, window in settings.custom_windows.items():
        if declared.strip().lower() in wanted:
            return window
    return None
