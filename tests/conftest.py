"""What holds for all tests: a broken invariant is an error, not a line in a log."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from haversack import types

os.environ["HAVERSACK_PANIC"] = "1"
# The policy of whoever runs the tests is none of theirs.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "haversack-tests-without-config")
# A slow or busy machine is no failure; time limits that matter have tests of their own.
settings.register_profile("haversack", deadline=None)
settings.load_profile("haversack")
# For `make mutants`: the same few examples each time, as a fault is either noticed or not.
settings.register_profile("mutants", deadline=None, max_examples=30, derandomize=True, database=None)


def _tells(message: object, remedy: object) -> None:
    """What a user is told is words: a missing value that became the text `None` is a fault of ours."""
    for words in (message, remedy):
        assert isinstance(words, str), f"not a sentence: {words!r}"
        assert not re.search(r"\bNone\b(?! of)", words), f"nothing in place of a name: {words!r}"


@pytest.fixture(scope="session", autouse=True)
def errors_are_sentences() -> Iterator[None]:
    """In every test, whichever error or problem it is about."""
    make_error, make_problem = types.HaversackError.__init__, types.Problem.__init__

    def error(self: types.HaversackError, code: str, message: str, remedy: str = "", **details: object) -> None:
        _tells(message, remedy)
        make_error(self, code, message, remedy, **details)

    def problem(self: types.Problem, stage: str, code: str, message: str, remedy: str = "") -> None:
        _tells(message, remedy)
        make_problem(self, stage, code, message, remedy)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(types.HaversackError, "__init__", error)
        patch.setattr(types.Problem, "__init__", problem)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a session keeps for the user (memories, records) never gets among those of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield
