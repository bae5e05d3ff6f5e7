"""How settings become an index: which embedder, and what it may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from haversack import local_index
from haversack.indexing import _index_settings, withheld_patterns
from haversack.local_index import embedder_spec
from haversack.types import HaversackError, Settings

FAR = "https://api.example.com/v1"
NEAR = "http://127.0.0.1:11434"


@pytest.mark.parametrize(
    ("provider", "endpoint", "model", "is_withheld"),
    [
        ("openai", FAR, "embed-large", True),
        ("ollama", NEAR, "nomic", False),
        ("ollama", "http://localhost:11434", "nomic", False),
        ("ollama", "http://[::1]:11434", "nomic", False),
        ("ollama", NEAR, "qwen:cloud", True),
        ("ollama", "http://192.168.1.7:11434", "nomic", True),
        ("ollama", "http://localhost.evil.example", "nomic", True),
        ("model2vec", "/models/small", "", False),
        ("static", "", "", False),
    ],
)
def test_patterns_are_kept_from_services_elsewhere(provider: str, endpoint: str, model: str, is_withheld: bool) -> None:
    """Both lists count for a service that runs, or hands on, beyond this machine; all files are free here."""
    settings = Settings(
        embedder=provider,
        embedder_endpoint=endpoint,
        embedder_model=model,
        restricted_paths=("data/",),
        remote_blocked_paths=("*.key",),
    )
    assert withheld_patterns(settings) == (["data/", "*.key"] if is_withheld else [])
    assert embedder_spec(settings).arguments.get("withheld", []) == withheld_patterns(settings)


def test_the_embedder_of_a_process_knows_what_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns travel as plain values to the process that embeds, and mean there what they mean here."""

    def transport(settings: Settings) -> object:
        def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
            del url, headers, timeout
            return {"data": [{"index": at, "embedding": [1.0, 0.0]} for at, _ in enumerate(json["input"])]}

        return post

    monkeypatch.setattr(local_index, "transport", transport)
    settings = Settings(embedder="openai", embedder_endpoint=FAR, embedder_model="m", restricted_paths=("data/",))
    embedder: Any = embedder_spec(settings).load()
    assert embedder.withholds("data/deep/a.py")
    assert not embedder.withholds("src/data.py")


@pytest.mark.parametrize(
    ("value", "bearer"), [("hunter2", "Bearer hunter2"), (" hunter2\n", "Bearer hunter2"), (None, ""), ("a\nb", "")]
)
def test_the_key_of_a_service_comes_from_the_variable_the_user_names(
    monkeypatch: pytest.MonkeyPatch, value: str | None, bearer: str
) -> None:
    """Its name travels, the key is read where it is sent; one that cannot be used is an error without the key in it."""
    sent: list[str] = []

    def transport(settings: Settings) -> object:
        def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
            del url, timeout
            sent.append(headers["authorization"])
            return {"data": [{"index": at, "embedding": [1.0, 0.0]} for at, _ in enumerate(json["input"])]}

        return post

    monkeypatch.setattr(local_index, "transport", transport)
    monkeypatch.delenv("EMBED_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("EMBED_KEY", value)
    settings = Settings(embedder="openai", embedder_endpoint=FAR, embedder_model="m", embedder_key_variable="EMBED_KEY")
    spec = embedder_spec(settings)
    assert "hunter2" not in repr(spec)
    if bearer:
        spec.load()
        assert sent == [bearer]
        return
    with pytest.raises(HaversackError) as caught:
        spec.load()
    assert (caught.value.code, sent) == ("no_key", [])
    assert not any(part in caught.value.message for part in ("EMBED_KEY", "a\nb"))


def test_another_key_makes_another_embedder() -> None:
    """A user who names the variable later gets vectors without a restart."""
    base = Settings(embedder="openai", embedder_endpoint=FAR, embedder_model="m")
    assert _index_settings(base) != _index_settings(replace(base, embedder_key_variable="EMBED_KEY"))


@pytest.mark.parametrize(("endpoint", "is_sent"), [(FAR, False), (NEAR, True)])
def test_a_service_elsewhere_gets_no_secret(monkeypatch: pytest.MonkeyPatch, endpoint: str, is_sent: bool) -> None:
    """Neither in a passage nor in a question; one on this machine reads what is there."""
    sent: list[str] = []

    def transport(settings: Settings) -> object:
        def post(url: str, json: Any, headers: Mapping[str, str], timeout: float) -> object:
            sent.extend(json["input"])
            return {"data": [{"index": at, "embedding": [1.0, 0.0]} for at, _ in enumerate(json["input"])]}

        return post

    monkeypatch.setattr(local_index, "transport", transport)
    key = "AKIA" + "Q3EGRN7TWY2LKZ5M"
    embedder = embedder_spec(Settings(embedder="openai", embedder_endpoint=endpoint, embedder_model="m")).load()
    embedder.embed_documents([f"ACCESS = '{key}'"])
    embedder.embed_query(f"why is {key} refused")
    assert (key in "".join(sent)) is is_sent
    assert "why is " in sent[-1]
