"""How much room a model has: its window, what of it is kept for the reply, and what is left for context."""

from __future__ import annotations

from dataclasses import replace

from haversack import tokens
from haversack.policy import catalogue
from haversack.types import Model, Problem, Request, Route, Settings

# The reply may take this part of the window: answers to coding questions with a changed file in them rarely need
# more, and three quarters for the prompt is what the larger windows are bought for.
REPLY_SHARE = 4
# A reply shorter than this breaks off in the middle of the first code block, so small windows keep at least this.
MIN_REPLY = 256
# Room for Haversack's own system text and for the frame of the messages, when a window is sized from a budget.
FRAME_ALLOWANCE = 1_500


def reply_reserve(model: Model, window: int) -> int:
    """Tokens kept for the reply: a quarter of the window, but no more than the model can write nor half the window."""
    return min(model.max_output, max(MIN_REPLY, window // REPLY_SHARE), window // 2)


def lower_reserve(route: Route, prompt_tokens: int) -> Route:
    """The route with less room kept for the reply, so that a prompt that must have this many tokens fits.

    A shorter reply is better than a refusal, down to 256 tokens; if even that is too much, the route is unchanged.
    """
    left = route.window - prompt_tokens
    if left >= route.reply_reserve or left < min(MIN_REPLY, route.reply_reserve):
        return route
    return replace(route, reply_reserve=left)


def output_cap(route: Route, prompt_tokens: int) -> int:
    """The most the reply may have after a prompt of this size, so that both together never exceed the window."""
    return max(0, min(route.model.max_output, route.window - prompt_tokens))


def context_budget(route: Route, request: Request, *, system: int, question: int, history: int, frame: int = 0) -> int:
    """Tokens for gathered context: what is left of the window after everything else, all counted, and no more than
    the request's budget, or without one, than what pays off with this model.

    A request's own budget may exceed the model's gather budget, never the window.
    """
    used = route.reply_reserve + system + question + history + frame + max(0, request.tools_tokens)
    wanted = route.model.gather_budget if request.budget_tokens is None else request.budget_tokens
    return max(0, min(route.window - used, wanted))


def shortfall(route: Route, request: Request, budget: int) -> tuple[Problem, ...]:
    """A Problem when the window leaves less for context than the request asked for."""
    if request.budget_tokens is None or budget >= request.budget_tokens:
        return ()
    cause = {"setting": "as haversack.contextWindow caps it", "assumed": "assumed, since the model is not known"}
    return (
        Problem(
            "route",
            "budget_cut",
            f"The request asked for {request.budget_tokens:,} tokens of context; the window of {route.window:,} "
            f"({cause.get(route.window_source, 'the model has no more')}) leaves {budget:,}.",
            "Choose a model with a larger window, or declare or raise the window in the settings.",
        ),
    )


def raised(request: Request, budget: int) -> tuple[Problem, ...]:
    """A Problem when what is pinned of a selected document takes more than the request allowed."""
    if request.document is None or request.budget_tokens is None or budget <= request.budget_tokens:
        return ()
    return (
        Problem(
            "document",
            "budget_raised",
            f"The card and the sections in focus take {budget:,} tokens and are always served; the request asked for "
            f"{request.budget_tokens:,}.",
            "Point at fewer sections, lower haversack.select.sectionSummaryMaxTokens, or allow more tokens.",
        ),
    )


def effective_window(model: Model, named: bool, request: Request, settings: Settings) -> tuple[int, str]:
    """The effective window and its source.

    When nobody named a model, its window is not known to be the one in use, so 16,000 is assumed; a request that
    asks for more context than fits there knows better, and is believed up to the default model's own window.
    """
    cap = settings.context_window
    if cap and cap < model.window:
        return cap, "setting"
    if model.assumed:
        return model.window, "assumed"
    if named or cap:
        return model.window, "model"
    assumed = catalogue.load().assumed_window
    if request.budget_tokens is not None:
        needed = request.budget_tokens + _overhead(model, request, settings)
        # A window of 4/3 of what is needed keeps a quarter of itself for the reply.
        assumed = max(assumed, needed + max(MIN_REPLY, min(model.max_output, needed // (REPLY_SHARE - 1) + 1)))
    return min(assumed, model.window), "assumed"


def _overhead(model: Model, request: Request, settings: Settings) -> int:
    count = tokens.counter(model.tokenizer).count
    history = sum(
        message.sealed.tokens
        if message.sealed
        else count(message.content) + sum(count(call.arguments) for call in message.tool_calls)
        for message in request.history
    )
    said = count(request.text) + count(settings.system_prompt)
    return said + history + max(0, request.tools_tokens) + FRAME_ALLOWANCE
