"""`python -m haversack.lsp`: the server alone, for editors and tests."""

import sys

from haversack.lsp.server import serve

if __name__ == "__main__":
    serve(sys.argv[1:])
