"""A real server process whose waiting requests age by a file: the number in it is the time in seconds."""

import os
from pathlib import Path

from haversack.lsp.server import serve_stdio
from haversack.session import Session, open_session
from haversack.turns import Turns

CLOCK = Path(os.environ["XDG_DATA_HOME"]) / "clock"


def make_session() -> Session:
    session = open_session()
    session.paused.turns = Turns(lambda: float(CLOCK.read_text("ascii")))
    return session


if __name__ == "__main__":
    serve_stdio(make_session)
