"""Secrets are looked for in linear time, also in what is made to be slow."""

from __future__ import annotations

import time

import pytest

from haversack.policy.secrets import find_secrets

HOSTILE = [
    *("-----BEGIN RSA " + "PRIVATE KEY-----\n", "password=", "token", 'secret = "', "://a:", "eyJa.eyJa.", "aws_"),
    *("-", "A", "a" * 63 + "\n", "discord", 'api_key: "x', "Bearer a1", "SG.aaaaaaaaaaaaaaaaaaaaaa.", "sk-1", ":AA"),
    *('authorization: basic "', "_key_", "-us1", "xoxb-1", "\\n", "hooks.slack.com/services/", "TOKEN=a", "é"),
]


@pytest.mark.parametrize("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_made_to_be_slow_is_not(piece: str) -> None:
    """What looks like the beginning of a secret over and over takes microseconds a piece."""
    _is_quick(piece * (100_000 // len(piece)), 1.0)


def test_a_megabyte_of_all_that_is_quick() -> None:
    """The pieces one after the other, and each many times."""
    _is_quick("".join(piece * (40_000 // len(piece)) for piece in HOSTILE), 6.0)


def _is_quick(text: str, limit: float) -> None:
    start = time.process_time()
    find_secrets(text, fragment=True)
    assert time.process_time() - start < limit
