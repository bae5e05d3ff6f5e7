"""What can be typed after `haversack`, with examples. Commands are imported when they run, so `--help` is quick.

Exit codes: 0 done · 1 refused or failed, with the reason on stderr · 2 wrong command line · 3 `doctor` found something
to mend · 130 interrupted · 141 the reader of the output went away.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haversack import __version__
from haversack.cli.examples import (
    COMPACT_EXAMPLES,
    CONTEXT_EXAMPLES,
    DOCTOR_EXAMPLES,
    EXIT_CODES,
    EXPLAIN_EXAMPLES,
    INDEX_EXAMPLES,
    LOG_EXAMPLES,
    MAIN_EXAMPLES,
    MEMORY_EXAMPLES,
    POLICY_EXAMPLES,
    SELECT_EXAMPLES,
    SERVE_EXAMPLES,
    VERIFY_EXAMPLES,
)
from haversack.formats import HistoryFormat
from haversack.policy.providers import provider_name
from haversack.types import Capability, Effort, Intent, InvalidRequest

OK, FAILED, USAGE, TO_MEND, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


@dataclass
class Options(argparse.Namespace):
    """The parsed command line; `command` runs it and returns the exit code. What it does not take has its default."""

    command: Callable[[Options], int]
    workspace: Path = field(default_factory=Path.cwd)
    cache_dir: Path | None = None
    question: str = ""
    place: str = ""
    section: Sequence[str] = ()
    quote: str = ""
    tenant: str = ""
    view: bool = False
    record: str = ""
    limit: int = 20
    model: str | None = None
    budget: int | None = None
    mention: Sequence[str] = ()
    json: bool = False
    prompt: bool = False
    all: bool = False
    status: bool = False
    rebuild: bool = False
    tcp: tuple[str, int] | None = None
    allow_remote: bool = False
    policy: Path | None = None
    schema: bool = False
    intent: Intent | None = None
    effort: Effort | None = None
    need: Sequence[Capability] = ()
    provider: Sequence[str] | None = None
    local_only: bool = False
    file: str = ""
    format: HistoryFormat = HistoryFormat.OPENAI


def parse(argv: Sequence[str]) -> Options:
    """Ends the process with code 2 and a sentence on stderr when the command line is wrong."""
    # The parser fills in what it knows: an argument that only some commands take must be there for the others as well.
    return _parser().parse_args(list(argv), Options(_no_command))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="haversack",
        description="Decides what an AI model should read for a question about your code, and says why.",
        epilog=f"{MAIN_EXAMPLES}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"haversack {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    context = _command(commands, "context", "pack the context for a question", _context, CONTEXT_EXAMPLES)
    context.add_argument("question", help='the question; "-" reads it from stdin')
    _question_options(context)
    shape = context.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print the whole bundle as JSON")
    shape.add_argument("--prompt", action="store_true", help="print only the finished prompt, for a model to read")
    context.add_argument("--all", action="store_true", help="list everything that stayed out, not only the best")

    explain = _command(commands, "explain", "say why a file is in the context, or not", _explain, EXPLAIN_EXAMPLES)
    explain.add_argument("place", type=_place, metavar="PATH[:LINE]", help="a file, and a line from 1 or lines (10-20)")
    explain.add_argument("question", help="the question, as for `context`")
    _question_options(explain)
    explain.add_argument("--json", action="store_true", help="print the manifest rows of the place as JSON")

    select = _command(commands, "select", "show one document: what it is, and its sections", _select, SELECT_EXAMPLES)
    _select_options(select)

    index = _command(commands, "index", "bring the index up to date, or show its state", _index, INDEX_EXAMPLES)
    _workspace_options(index)
    what = index.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true", help="show the state without indexing")
    what.add_argument("--rebuild", action="store_true", help="build it again from nothing")
    index.add_argument("--json", action="store_true", help="print the state as JSON")

    log = _command(commands, "log", "list the records of answers, or show one", _log, LOG_EXAMPLES)
    log.add_argument("record", nargs="?", default="", metavar="ID", help="the record to show, or the start of its id")
    log.add_argument("--limit", type=_count, default=20, metavar="N", help="how many to list at most (default: 20)")
    _workspace_options(log)
    log.add_argument("--json", action="store_true", help="print the records as JSON")

    verify = _command(commands, "verify", "check a record, and the files it names", _verify, VERIFY_EXAMPLES)
    verify.add_argument("record", metavar="ID", help="the record, or the start of its id")
    verify.add_argument("--tenant", default="", metavar="NAME", help="whose documents are compared besides everybody's")
    _workspace_options(verify)
    verify.add_argument("--json", action="store_true", help="print what was found as JSON")

    doctor = _command(commands, "doctor", "check everything that has to work", _doctor, DOCTOR_EXAMPLES)
    _cache_option(doctor)
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")

    policy = _command(commands, "policy", "show the policy and what is wrong with it", _policy, POLICY_EXAMPLES)
    _workspace_options(policy)
    kind = policy.add_mutually_exclusive_group()
    kind.add_argument("--json", action="store_true", help="print policy and findings as JSON")
    kind.add_argument("--schema", action="store_true", help="print the JSON schema of policy files")

    memory = _command(commands, "memory", "keep notes that questions are answered with", _memory, MEMORY_EXAMPLES)
    _memory_actions(memory)

    compact = _command(commands, "compact", "shorten a conversation in a file", _compact, COMPACT_EXAMPLES)
    compact.add_argument("file", metavar="FILE", help='JSON; "-" reads it from stdin')
    forms, default = list(HistoryFormat), HistoryFormat.OPENAI
    compact.add_argument("--format", type=HistoryFormat, choices=forms, default=default, help="default: openai")
    compact.add_argument("--model", metavar="PROVIDER/NAME", help="the model that goes on with it")
    compact.add_argument("--budget", type=_tokens, metavar="N", help="tokens it may have (20000, 20k)")
    _workspace_options(compact)
    compact.add_argument("--json", action="store_true", help="print what was done with it as JSON")

    summary = "speak the Language Server Protocol on stdin and stdout"
    serve = _command(commands, "serve", summary, _serve, SERVE_EXAMPLES)
    serve.add_argument("--stdio", action="store_true", help="the default; accepted because editors pass it")
    serve.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="listen on a socket instead")
    serve.add_argument("--allow-remote", action="store_true", help="let --tcp take addresses beyond this machine")
    _cache_option(serve)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],  # pyright: ignore[reportPrivateUsage]
    name: str,
    summary: str,
    run: Callable[[Options], int],
    examples: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"{examples}\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=run)
    return command


def _select_options(select: argparse.ArgumentParser) -> None:
    select.add_argument("place", type=_place, metavar="PATH[:LINES]", help="a document, and the lines it is about")
    select.add_argument(
        "--section", action="append", default=[], metavar="ID", help="a section it is about; repeatable"
    )
    select.add_argument("--quote", default="", metavar="TEXT", help="words of it that it is about")
    select.add_argument("--question", default="", metavar="TEXT", help="what is asked, when no place is pointed at")
    select.add_argument("--budget", type=_tokens, metavar="N", help="tokens of card and sections at most (4000, 8k)")
    select.add_argument("--model", metavar="PROVIDER/NAME", help="the model to pack for, such as openai/gpt-4o")
    select.add_argument("--tenant", default="", metavar="NAME", help="whose documents may be seen besides everybody's")
    select.add_argument("--view", action="store_true", help="show it to a person; nothing is made for a model")
    select.add_argument("--json", action="store_true", help="print card, sections and bundle as JSON")
    _workspace_options(select)


def _memory_actions(memory: argparse.ArgumentParser) -> None:
    actions = memory.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, summary in (
        ("list", "list your memories and those of the folder"),
        ("add", "keep a note"),
        ("update", "change a note"),
        ("delete", "remove a note"),
        ("search", "find the notes that speak of a question"),
        ("export", "write the folder's notes into .haversack/memory"),
        ("import", "take in the notes of .haversack/memory"),
    ):
        action = actions.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name in ("update", "delete"):
            action.add_argument("memory", metavar="ID", help="the note's id")
        if name in ("add", "update"):
            needed = name == "add"
            action.add_argument("--category", required=needed, help="knowledge, rule or experience")
            action.add_argument("--title", required=needed, help="one line")
            action.add_argument("--content", required=needed, help='the text; "-" reads it from stdin')
            action.add_argument("--keyword", action="append", metavar="WORD", help="a word to find it by; repeatable")
            what = "FOLDER/PATH", "a file it was derived from, as restricted as which it is; repeatable"
            action.add_argument("--origin", action="append", default=[], metavar=what[0], help=what[1])
            action.add_argument("--private", action=argparse.BooleanOptionalAction, help="never for a remote model")
        if name == "add":
            action.add_argument("--user", action="store_true", help="for all folders, not only this one")
        if name == "search":
            action.add_argument("question", help="what the notes are to speak of")
            action.add_argument("--limit", type=_count, default=10, metavar="N", help="at most (default: 10)")
        _workspace_options(action)
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _workspace_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--workspace", type=_folder, default=Path.cwd(), metavar="DIR", help="default: this folder")
    _cache_option(command)


def _cache_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help="where indexes are kept (default: the platform's cache folder)"
    )


def _question_options(command: argparse.ArgumentParser) -> None:
    _workspace_options(command)
    command.add_argument("--model", metavar="PROVIDER/NAME", help="the model to pack for, such as openai/gpt-4o")
    command.add_argument("--budget", type=_tokens, metavar="N", help="tokens of gathered context at most (4000, 8k)")
    command.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="a policy above the user's and the folder's; it only tightens",
    )
    command.add_argument(
        "--mention",
        action="append",
        default=[],
        metavar="WHAT",
        help="what must be in: path, path:10-20, folder, @Symbol, diff; repeatable (@-words of the question count too)",
    )
    _route_options(command)


def _route_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--intent", type=Intent, choices=list(Intent), help="the kind of work; default: as it reads")
    command.add_argument("--effort", type=Effort, choices=list(Effort), help="how hard to think; default: the rule's")
    command.add_argument(
        "--need",
        type=Capability,
        action="append",
        default=[],
        choices=list(Capability),
        help="what the model must be able to do; repeatable",
    )
    command.add_argument("--local-only", action="store_true", help="only models on this machine")
    command.add_argument(
        "--provider",
        type=_provider,
        action="append",
        metavar="NAME",
        help="a provider there is a key for, such as openai; repeatable (default: all). The key itself is never taken",
    )


def _provider(text: str) -> str:
    try:
        return provider_name(text, "provider")
    except InvalidRequest as error:
        raise argparse.ArgumentTypeError(f"{error.message} {error.remedy}") from None


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return path


def _place(text: str) -> str:
    if re.search(r"[:#]L?0+(-L?\d+)?$", text):
        raise argparse.ArgumentTypeError(f"{text!r} names a line 0; lines count from 1")
    return text


def _tokens(text: str) -> int:
    digits, factor = (text[:-1], 1000) if text[-1:] in "kK" else (text, 1)
    try:
        value = int(float(digits) * factor)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens (4000 or 8k)") from None
    if value <= 0:
        raise argparse.ArgumentTypeError("a budget is at least 1 token")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT (127.0.0.1:7345)")
    return host.strip("[]") or "127.0.0.1", int(port)


def _no_command(options: Options) -> int:
    del options
    return USAGE  # the parser never leaves it: a command is required


def _context(options: Options) -> int:
    return _module("context").run(options)


def _explain(options: Options) -> int:
    return _module("context").explain(options)


def _select(options: Options) -> int:
    return _module("select").run(options)


def _index(options: Options) -> int:
    return _module("index").run(options)


def _log(options: Options) -> int:
    return _module("log").run(options)


def _verify(options: Options) -> int:
    return _module("log").verify(options)


def _doctor(options: Options) -> int:
    return _module("doctor").run(options)


def _policy(options: Options) -> int:
    return _module("policy").run(options)


def _memory(options: Options) -> int:
    return _module("memory").run(options)


def _compact(options: Options) -> int:
    return _module("compact").run(options)


def _serve(options: Options) -> int:
    return _module("serve").run(options)


def _module(name: str) -> Any:
    """The command's module, loaded when it runs: the engine takes half a second that `--help` need not wait for."""
    return importlib.import_module(f"haversack.cli.{name}")
