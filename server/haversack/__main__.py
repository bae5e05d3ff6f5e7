"""`haversack`: serve an editor, or answer at the command line. The exit codes are in `haversack.cli.arguments`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from haversack.cli.arguments import BROKEN_PIPE, INTERRUPTED, parse


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(sys.argv[1:] if argv is None else argv)
    try:
        return options.command(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`haversack context ... | head`). Nothing more can be said to it.
        sys.stderr.close()
        return BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
