"""The optional model for search words: off by default, never waited for, never fatal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from haversack.outbound import HttpStatusError
from haversack.search_terms import DEADLINE_S, MAX_TERMS, widen
from haversack.types import Confidence, HaversackError, Intent, Plan, Request, Settings

ON = Settings(terms_endpoint="http://127.0.0.1:9/v1", terms_model="tiny")


def plan(codebase: bool = True) -> Plan:
    return Plan(
        request=Request("how is the window resolved? " + "x" * 5_000),
        codebase=codebase,
        broad=False,
        intent=Intent.CHAT,
        categories=(),
        confidence=Confidence.HIGH,
        reason="",
        terms=("window", "resolved"),
        identifiers=(),
        paths=(),
        sources=(),
        mentions=(),
    )


class Model:
    """Stands in for `outbound.transport(settings)`."""

    def __init__(self, answer: object = None, error: Exception | None = None, wait: float = 0) -> None:
        self.answer, self.error, self.wait = answer, error, wait
        self.calls: list[tuple[str, Any, float]] = []
        self.headers: list[Mapping[str, str]] = []

    def __call__(self, url: str, json: Any, headers: Mapping[str, str], timeout: float) -> Any:
        self.calls.append((url, json, timeout))
        self.headers.append(headers)
        time.sleep(self.wait)
        if self.error:
            raise self.error
        return self.answer


def says(text: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": text}}]}


def test_words_are_added_after_the_questions_own() -> None:
    """New words follow, known ones are not repeated, and only the head of the question is sent."""
    model = Model(says("context_window, Window budget.py budget.py 4"))
    widened, problems = asyncio.run(widen(plan(), ON, model))
    assert widened.terms == ("window", "resolved", "context_window", "budget.py")
    assert problems == ()
    url, body, timeout = model.calls[0]
    assert url == "http://127.0.0.1:9/v1/chat/completions"
    assert body["model"] == "tiny"
    assert len(body["messages"][1]["content"]) == 2_000
    assert timeout == DEADLINE_S


@pytest.mark.parametrize(("settings", "codebase"), [(Settings(), True), (ON, False)])
def test_nobody_is_asked_without_need(settings: Settings, codebase: bool) -> None:
    """Off by default, and silent for questions that search nothing."""
    model = Model(says("word"))
    assert asyncio.run(widen(plan(codebase), settings, model)) == (plan(codebase), ())
    assert model.calls == []


def test_a_slow_model_is_not_waited_for() -> None:
    """After 200 ms the question's own words have to do."""

    async def timed() -> tuple[float, tuple[str, ...], int]:
        started = time.perf_counter()
        widened, problems = await widen(plan(), ON, Model(says("word"), wait=0.6))
        return time.perf_counter() - started, widened.terms, len(problems)

    seconds, terms, n_problems = asyncio.run(timed())
    assert seconds < 0.5
    assert (terms, n_problems) == (plan().terms, 1)


@pytest.mark.parametrize(
    "model",
    [
        Model(error=ConnectionRefusedError()),
        Model(error=HttpStatusError(500, "the question, echoed", {})),
        Model(error=HaversackError("endpoint_not_allowed", "no")),
        Model({"error": "x"}),
        Model([]),
        Model(says(None)),
        Model({"choices": []}),
    ],
)
def test_failures_are_problems(model: Model) -> None:
    """A dead, refusing or confused endpoint costs its words and nothing else; its text is not repeated."""
    widened, problems = asyncio.run(widen(plan(), ON, model))
    assert widened == plan()
    assert len(problems) == 1
    assert "echoed" not in problems[0].message


def test_bugs_are_not_hidden() -> None:
    """An error of our own making is raised."""
    with pytest.raises(ZeroDivisionError):
        asyncio.run(widen(plan(), ON, Model(error=ZeroDivisionError())))


def test_a_talkative_model_is_cut() -> None:
    """No more than eight words are taken."""
    widened, _ = asyncio.run(widen(plan(), ON, Model(says(" ".join(f"word{n}" for n in range(100))))))
    assert len(widened.terms) == 2 + MAX_TERMS


def test_the_key_is_the_users_and_is_sent_as_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a variable no key is sent; a variable that is not set is a problem, and nobody is asked."""
    settings = replace(ON, terms_key_variable="TERMS_KEY")
    monkeypatch.setenv("TERMS_KEY", "hunter2")
    model = Model(says("word"))
    asyncio.run(widen(plan(), ON, model))
    asyncio.run(widen(plan(), settings, model))
    assert model.headers == [{}, {"authorization": "Bearer hunter2"}]
    monkeypatch.delenv("TERMS_KEY")
    widened, problems = asyncio.run(widen(plan(), settings, model))
    assert (widened, [problem.code for problem in problems], len(model.calls)) == (plan(), ["no_key"], 2)
