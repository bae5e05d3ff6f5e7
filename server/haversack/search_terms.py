"""Further search words from a small model, where the user has set one up. Never waited for longer than 200 ms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from haversack.outbound import read_key
from haversack.types import HaversackError, Plan, Problem, Settings

# Less than a fifth of a second is not noticed beside a model's first word.
DEADLINE_S = 0.2
# More words than this dilute the question's own.
MAX_TERMS = 8
# The question's beginning says what it is about; the rest may be a pasted log.
MAX_QUESTION = 2_000

_PROMPT = (
    "Name identifiers, file names and technical words that code answering this question is likely to contain. "
    "Answer with up to 8 single words, parted by spaces, and nothing else."
)
_WORD = re.compile(r"[^\W_][\w.-]{1,40}")

Post = Callable[..., Any]


async def widen(plan: Plan, settings: Settings, post: Post) -> tuple[Plan, tuple[Problem, ...]]:
    """The plan with the model's words after its own. Without an endpoint, or when nothing is searched, unchanged.

    `post` is `outbound.transport(settings)`. Only the question is sent, and no failure is more than a Problem.
    """
    if not settings.terms_endpoint or not plan.codebase:
        return plan, ()
    try:
        answer = await asyncio.wait_for(asyncio.to_thread(_ask, plan.request.text, settings, post), DEADLINE_S)
        words = _words(answer)
    except TimeoutError:
        return plan, (_problem("late", f"gave no words within {DEADLINE_S * 1_000:.0f} ms"),)
    except HaversackError as error:
        return plan, (Problem("search terms", error.code, error.message, error.remedy),)
    except (OSError, ValueError) as error:
        return plan, (_problem("failed", f"could not be asked ({type(error).__name__})"),)
    except Exception as error:
        if not isinstance(getattr(error, "status", None), int):
            raise
        return plan, (_problem("failed", f"refused (status {getattr(error, 'status', 0)})"),)
    known = {term.lower() for term in plan.terms}
    new = tuple(dict.fromkeys(word for word in words if word.lower() not in known))[:MAX_TERMS]
    return replace(plan, terms=(*plan.terms, *new)), ()


def _ask(question: str, settings: Settings, post: Post) -> object:
    base = settings.terms_endpoint.rstrip("/")
    body = {
        "model": settings.terms_model,
        "messages": [{"role": "system", "content": _PROMPT}, {"role": "user", "content": question[:MAX_QUESTION]}],
        "max_tokens": 60,
        "temperature": 0,
        "stream": False,
    }
    url = f"{base}/chat/completions" if base.endswith("/v1") else f"{base}/v1/chat/completions"
    key = read_key(settings.terms_key_variable, "haversack.searchTerms.keyVariable")
    return post(url, body, {"authorization": f"Bearer {key}"} if key else {}, DEADLINE_S)


def _words(answer: object) -> list[str]:
    """The words of an answer in the OpenAI form. Raises ValueError for any other form."""
    try:
        text = cast("Any", answer)["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("not an answer of a chat model") from error
    if not isinstance(text, str):
        raise ValueError("not a text")
    return _WORD.findall(text[:MAX_QUESTION])


def _problem(code: str, what: str) -> Problem:
    return Problem(
        "search terms",
        code,
        f"The model for search words {what}; the question's own words were used.",
        "Check haversack.searchTerms.endpoint, or leave it empty.",
    )
