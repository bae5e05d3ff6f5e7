"""Broken invariants: fatal under test, logged once in use, and silent about content."""

from __future__ import annotations

import logging

import pytest

from haversack import bugs


def test_a_bug_is_fatal_under_test() -> None:
    """With HAVERSACK_PANIC set, as here, a report raises."""
    with pytest.raises(bugs.Impossible, match="span without file"):
        bugs.report("span without file")


def test_a_bug_is_logged_once_and_survived(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """In use, the same report twice is one line, and it shows types, not values."""
    monkeypatch.delenv("HAVERSACK_PANIC")
    monkeypatch.setattr(bugs, "_seen", set())
    with caplog.at_level(logging.ERROR):
        bugs.report("block without row", "the user's secret")
        bugs.report("block without row", "the user's secret")
    assert len(caplog.records) == 1
    assert "block without row (str)" in caplog.text
    assert "secret" not in caplog.records[0].getMessage()
