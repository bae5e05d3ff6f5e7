"""Who writes summaries: the editor's own model, or a model behind an address in the settings. Never a condition.

What is sent has its secrets hidden. A model that fails, says nothing, says too much or comes late costs its summaries
and adds a Problem; the conversation is then shortened without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from haversack.compact import Written
from haversack.outbound import is_on_this_machine, read_key
from haversack.policy.catalogue import is_forwarded
from haversack.redact import hidden
from haversack.types import Batch, HaversackError, Problem, Settings

# Calls at once: providers of small models take no more before they refuse some.
AT_ONCE = 4
# Characters a token has at most in prose; an answer longer than its tokens allow is no summary.
CHARACTERS_A_TOKEN = 6

Post = Callable[..., Any]


class Port(Protocol):
    """One model. `remote`: it runs elsewhere, or nobody can say where, so what is restricted may not go there."""

    @property
    def name(self) -> str: ...
    @property
    def remote(self) -> bool: ...
    async def ask(self, text: str, most: int, seconds: float) -> str: ...


def port_of(settings: Settings, editor: Port | None, post: Post) -> Port | None:
    """The model of the settings; None when there is none, or when the editor offers none."""
    if settings.summarizer == "editor":
        return editor
    if settings.summarizer in ("openai", "ollama") and settings.summarizer_endpoint and settings.summarizer_model:
        return Endpoint(settings, post)
    return None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind an OpenAI-compatible or an Ollama address. `post` is `outbound.transport(settings)`."""

    settings: Settings
    post: Post

    @property
    def name(self) -> str:
        return self.settings.summarizer

    @property
    def remote(self) -> bool:
        settings = self.settings
        return not is_on_this_machine(settings.summarizer_endpoint) or is_forwarded(settings.summarizer_model)

    async def ask(self, text: str, most: int, seconds: float) -> str:
        return await asyncio.to_thread(self._ask, text, most, seconds)

    def _ask(self, text: str, most: int, seconds: float) -> str:
        base = self.settings.summarizer_endpoint.rstrip("/")
        key = read_key(self.settings.summarizer_key_variable, "haversack.summarizer.keyVariable")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        body: dict[str, object] = {
            "model": self.settings.summarizer_model,
            "messages": [{"role": "user", "content": text}],
            "stream": False,
        }
        if self.name == "ollama":
            body["options"] = {"num_predict": most, "temperature": 0}
            answer = self.post(f"{base}/api/chat", body, headers, seconds)
            return _text_at(answer, "message", "content")
        body |= {"max_tokens": most, "temperature": 0}
        url = f"{base}/chat/completions" if base.endswith("/v1") else f"{base}/v1/chat/completions"
        return _text_at(self.post(url, body, headers, seconds), "choices", 0, "message", "content")


async def write(
    batches: Sequence[Batch], port: Port, settings: Settings
) -> tuple[Mapping[str, Written], tuple[Problem, ...]]:
    """What the model wrote for each batch, side by side, within one deadline for all; and what went wrong, once."""
    seconds = settings.summarizer_timeout_ms / 1_000
    late = _problem("summary_late", f"gave no summary within {seconds:g} seconds")
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(batch: Batch) -> str | Problem:
        try:
            async with gate:
                text = hidden(batch.text, len)[0] if settings.redact_secrets and port.remote else batch.text
                answer = (await port.ask(text, batch.most, seconds)).strip()
        except TimeoutError:
            return late
        except HaversackError as error:
            return Problem("compact", error.code, error.message, error.remedy)
        except Exception as error:  # noqa: BLE001 - an editor's or a server's refusal comes in any form
            return _problem("summary_failed", f"could not be asked ({type(error).__name__})")
        if not answer:
            return _problem("summary_empty", "gave an empty summary")
        if len(answer) >= min(len(batch.text), 2 * CHARACTERS_A_TOKEN * batch.most):
            return _problem("summary_too_long", "gave a summary that is too long to be one")
        return answer

    tasks = [asyncio.ensure_future(one(batch)) for batch in batches]
    try:
        await asyncio.wait(tasks, timeout=seconds)
        results = [task.result() if task.done() else late for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
    pairs = list(zip(batches, results, strict=True))
    written = {batch.key: Written(result, port.name) for batch, result in pairs if isinstance(result, str)}
    problems = dict.fromkeys(result for _, result in pairs if isinstance(result, Problem))
    return written, tuple(problems)


def _text_at(answer: object, *path: str | int) -> str:
    """The text at a path in an answer. Raises ValueError for an answer of another form."""
    value: Any = answer
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("not an answer of a chat model") from error
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _problem(code: str, what: str) -> Problem:
    return Problem(
        "compact",
        code,
        f"The model for summaries {what}; the conversation was shortened without it.",
        "Check haversack.summarizer, or set its provider to `extract`.",
    )
