"""`haversack serve`: the language server, on stdio unless a port is named."""

from __future__ import annotations

import sys

from haversack.cli.arguments import USAGE, Options
from haversack.lsp.server import serve_stdio, serve_tcp
from haversack.session import Session, open_session
from haversack.types import HaversackError


def run(options: Options) -> int:
    """Returns only when the address is refused: the server ends the process with the protocol's own exit code."""

    def make_session() -> Session:
        return open_session(options.cache_dir)

    if options.tcp is None:
        serve_stdio(make_session)
    host, port = options.tcp
    try:
        serve_tcp(host, port, allow_remote=options.allow_remote, make_session=make_session)
    except HaversackError as error:
        print(f"haversack serve: {error.message} {error.remedy}", file=sys.stderr)
        return USAGE
