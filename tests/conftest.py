"""What holds for all tests: a broken invariant is an error, not a line in a log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["HAVERSACK_PANIC"] = "1"
# The policy of whoever runs the tests is none of theirs.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "haversack-tests-without-config")
# A slow or busy machine is no failure; time limits that matter have tests of their own.
settings.register_profile("haversack", deadline=None)
settings.load_profile("haversack")
# For `make mutants`: the same few examples each time, as a fault is either noticed or not.
settings.register_profile("mutants", deadline=None, max_examples=30, derandomize=True, database=None)


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a session keeps for the user (memories, records) never gets among those of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield
