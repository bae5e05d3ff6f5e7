"""Model names → what is known about the model. Names are resolved by family, so dated and sized names work too."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources

from haversack.types import Capability, DeclaredModel, Model, Settings

# Family and provider of a model that nothing is known of.
UNKNOWN = "unknown"


def resolve(name: str, settings: Settings, declared: Sequence[DeclaredModel] = ()) -> Model:
    """The model called `name` (`provider/model` or a bare name); for an unknown one, safe guesses with `assumed` set.

    What `declared` says of it wins over the catalogue, and a window of the user's own `models.windows` over both.
    Whether it is local follows from its provider alone, since text goes where the provider is.
    """
    catalogue = load()
    provider, bare = _split(name.strip())
    family = _match(bare, catalogue)
    if family is None:
        model = replace(catalogue.unknown, name=bare or name, provider=provider or UNKNOWN)
    else:
        model = replace(family, name=bare, provider=provider or family.provider)
        input_price, output_price = _prices(bare, model.provider, catalogue)
        model = replace(model, input_price=input_price, output_price=output_price)
    model = replace(
        model,
        local=_is_local(provider, bare, catalogue),
        # A model without a provider is one that somebody runs: there is nobody to hold a key of.
        requires_key=model.provider != UNKNOWN and model.provider not in catalogue.local_providers,
    )
    mine = _declared(name, declared)
    if mine is not None:
        model = _merged(model, mine)
    window = _declared_window(name, bare, settings.custom_windows)
    if window is None:
        return model
    return replace(model, window=window, max_output=min(model.max_output, window), assumed=False)


def is_known(name: str, declared: Sequence[DeclaredModel] = (), windows: Mapping[str, int] | None = None) -> bool:
    """Whether anything is known of the model: by its family, a declaration, or a window of the settings."""
    bare = _split(name.strip())[1]
    if _match(bare, load()) is not None or _declared(name, declared) is not None:
        return True
    return windows is not None and _declared_window(name, bare, windows) is not None


def full_name(model: Model) -> str:
    """`provider/model`, as policies and requests write it."""
    return f"{model.provider}/{model.name}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The parsed `models.toml`. `patterns` are normalised names, longest first."""

    families: tuple[Model, ...]
    patterns: tuple[tuple[str, Model], ...]
    unknown: Model
    default_model: str
    assumed_window: int
    local_providers: frozenset[str]
    prices: tuple[_Price, ...]


@dataclass(frozen=True, slots=True)
class _Price:
    """US dollars for a million tokens, for one normalised name at its maker's own service."""

    name: str
    provider: str
    input: str
    output: str


@lru_cache(maxsize=1)
def load() -> Catalogue:
    raw = tomllib.loads((resources.files("haversack.policy") / "models.toml").read_text(encoding="utf-8"))
    default = raw["default"]
    unknown = Model(
        name="",
        provider=UNKNOWN,
        family=UNKNOWN,
        window=default["window"],
        max_output=default["max_output"],
        tokenizer=default["tokenizer"],
        gather_budget=default["gather_budget"],
        local=False,
        assumed=True,
        capabilities_known=False,
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
            capabilities=tuple(Capability(each) for each in row["capabilities"]),
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
        prices=tuple(
            _Price(normalise(name), row["provider"], row["input"], row["output"])
            for row in raw["price"]
            for name in row["match"]
        ),
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


# What may follow a name in the name of the same model: a date, and a host's version after it.
_DATED = re.compile(r"-?(?:latest|\d{8}|\d{4}-\d{2}-\d{2}|\d{4})?(?:-?v\d+(?::\d+)?)?")


def _prices(bare: str, provider: str, catalogue: Catalogue) -> tuple[str, str]:
    """What the model costs at this provider, "" where that is not known. The longest name that fits is its own."""
    normal = normalise(bare)
    fitting = [
        price
        for price in catalogue.prices
        if price.provider == provider and normal.startswith(price.name) and _DATED.fullmatch(normal, len(price.name))
    ]
    best = max(fitting, key=lambda price: len(price.name), default=None)
    return (best.input, best.output) if best is not None else ("", "")


def _declared(name: str, declared: Sequence[DeclaredModel]) -> DeclaredModel | None:
    """The first declaration of this very model: an earlier layer's word stands."""
    wanted = _split(name.strip().lower())
    return next((each for each in declared if _split(each.name.strip().lower()) == wanted), None)


def _merged(model: Model, mine: DeclaredModel) -> Model:
    window = mine.window or model.window
    return replace(
        model,
        window=window,
        max_output=min(mine.max_output or model.max_output, window),
        assumed=model.assumed and not mine.window,
        capabilities=model.capabilities if mine.capabilities is None else mine.capabilities,
        capabilities_known=True,
        requires_key=model.requires_key if mine.requires_key is None else mine.requires_key,
        input_price=mine.input_price or model.input_price,
        output_price=mine.output_price or model.output_price,
    )


def _is_local(provider: str, bare: str, catalogue: Catalogue) -> bool:
    return provider in catalogue.local_providers and not is_forwarded(bare)


def is_forwarded(name: str) -> bool:
    """Whether a service on this machine hands this model's requests on: Ollama does so for tags that say `cloud`."""
    return re.search(r"[:-]cloud$", name.strip().lower()) is not None


def _declared_window(name: str, bare: str, windows: Mapping[str, int]) -> int | None:
    wanted = {name.strip().lower(), bare.lower()}
    for declared, window in windows.items():
        if declared.strip().lower() in wanted:
            return window
    return None
