"""What holds for all tests: a broken invariant is an error, not a line in a log."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["HAVERSACK_PANIC"] = "1"
# A slow or busy machine is no failure; time limits that matter have tests of their own.
settings.register_profile("haversack", deadline=None)
settings.load_profile("haversack")
