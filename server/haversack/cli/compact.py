"""`haversack compact`: a conversation in a file, shortened, in the form it came in."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any, cast

from rich.console import Console

from haversack.cli.arguments import OK, Options
from haversack.cli.opening import opened, run_async
from haversack.compacting import Shortened, shorten
from haversack.formats import READERS, WRITERS, HistoryFormat, anthropic
from haversack.types import HaversackError, InvalidRequest, Request


def run(options: Options) -> int:
    return run_async(_compact, options)


async def _compact(options: Options, console: Console) -> int:
    del console
    given = _given(options.file)
    messages = READERS[options.format](given, "file")
    async with opened(options) as session:
        asked, workspace = await session.prepared(Request(""))
        done = await shorten(messages, workspace, session.conversations, options.model, options.budget)
        done = replace(done, problems=(*asked.problems, *done.problems))
    written: object = WRITERS[options.format](done.history.messages)
    if isinstance(given, dict):
        # A whole request stays one, with everything else that is in it.
        system = anthropic.system(done.history.messages) if options.format is HistoryFormat.ANTHROPIC else []
        written = {**cast("dict[str, Any]", given), **({"system": system} if system else {}), "messages": written}
    json.dump(_report(done, written) if options.json else written, sys.stdout, ensure_ascii=False)
    print()
    if not options.json:
        sizes = f"{done.history.tokens_before:,} → {done.history.tokens_after:,} tokens"
        print(f"haversack: {done.history.tier.value}, {sizes}. {done.note}", file=sys.stderr)
        for problem in done.problems:
            print(f"haversack: {problem.message} {problem.remedy}", file=sys.stderr)
    return OK


def _given(name: str) -> object:
    try:
        if name == "-":
            return json.load(sys.stdin)
        with open(name, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise HaversackError("file_not_readable", f"{name} can't be read: {error.strerror}.", "Check it.") from None
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{name} holds no JSON.", "Give a list of messages, or a request that has one.") from None


def _report(done: Shortened, written: object) -> dict[str, object]:
    history = done.history
    return {
        "history": written,
        "tier": history.tier.value,
        "tokensBefore": history.tokens_before,
        "tokensAfter": history.tokens_after,
        "target": done.target,
        "note": done.note,
        "summaries": [
            {"by": each.by, "messages": each.sources, "tokens": [each.tokens_before, each.tokens_after]}
            for each in history.summaries
        ],
        "problems": [{"code": each.code, "message": each.message, "remedy": each.remedy} for each in done.problems],
    }
