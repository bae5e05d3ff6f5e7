"""What holds for all tests: a broken invariant is an error, not a line in a log."""

from __future__ import annotations

import os

os.environ["HAVERSACK_PANIC"] = "1"
