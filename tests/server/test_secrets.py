"""Secrets: every rule finds what it says and nothing else, in linear time."""

from __future__ import annotations

import pytest

from haversack.policy.secrets import Rule, find_secrets, rules


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_each_rule_finds_its_examples_and_misses_its_counterexamples(rule: Rule) -> None:
    """The strings beside a rule are its contract."""
    assert rule.finds
    assert rule.misses
    for text in rule.finds:
        assert [secret.kind for secret in find_secrets(text)][:1] == [rule.id], text
    for text in rule.misses:
        assert find_secrets(text) == (), text
