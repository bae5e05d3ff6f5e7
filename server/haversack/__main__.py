"""`haversack`: serve an editor, or answer at the command line. The exit codes are in `haversack.cli.arguments`."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from haversack.cli.arguments import BROKEN_PIPE, FAILED, INTERRUPTED, parse


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        _prepare(stream)
    options = parse(sys.argv[1:] if argv is None else argv)
    try:
        return options.command(options)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("haversack"):
            raise
        message = f"haversack: the package {error.name} is missing. Install Haversack again, with its dependencies."
        print(message, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`haversack context ... | head`). Nothing more can be said to it.
        sys.stderr.close()
        return BROKEN_PIPE


def _prepare(stream: object) -> None:
    """Text in pipes and files is UTF-8 on every system; a terminal of few characters shows `?` for the others."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
