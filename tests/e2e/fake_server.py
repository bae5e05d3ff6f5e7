"""A real server process around a line and an index that do what a test asks of them."""

import sys
from pathlib import Path

from haversack.lsp.server import serve_stdio
from haversack.session import Session

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def make_session() -> Session:
    from e2e.fakes import FakeIndexing, FakeLine

    return Session(line=FakeLine(), indexing=FakeIndexing(step=0.25))


if __name__ == "__main__":
    serve_stdio(make_session)
