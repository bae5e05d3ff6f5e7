"""Secrets: every rule finds what it says and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from haversack.policy import secrets
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


def test_every_rule_works_when_the_table_is_read_anew() -> None:
    """What is kept between calls is what the table says: emptied and read again, examples are found and missed."""
    for kept in (rules, secrets._by_keyword, secrets._by_start, secrets._pair_tables):
        kept.cache_clear()
    for rule in rules():
        assert all(secret.kind == rule.id for text in rule.finds for secret in find_secrets(text)[:1])
        assert all(find_secrets(text) for text in rule.finds)
        assert not any(find_secrets(text) for text in rule.misses)
        assert rule.finds
        assert rule.misses


def test_places_of_overlapping_secrets_are_one() -> None:
    """In order, from the first to the last of their characters, by the name of the rule that comes first."""
    assert secrets._united([(9, 12, 3, "c"), (0, 5, 2, "b"), (3, 7, 1, "a"), (7, 8, 0, "d")]) == [
        (0, 7, "a"), (7, 8, "d"), (9, 12, "c"),
    ]  # fmt: skip
    assert secrets._united([(0, 9, 1, "a"), (2, 3, 2, "b")]) == [(0, 9, "a")]


@pytest.mark.parametrize(
    ("value", "bits"), [(b"", 0.0), (b"aaaa", 0.0), (b"aabb", 1.0), (b"abcd", 2.0), (bytes(range(256)), 8.0)]
)
def test_entropy_is_in_bits_a_byte(value: bytes, bits: float) -> None:
    """Of Shannon: nothing where all bytes are the same, log2 of the length where none are."""
    assert secrets.entropy(value) == pytest.approx(bits)


def test_a_text_without_its_secrets_is_the_rest() -> None:
    """Each is cut out, and what is before, between and behind them stays."""
    key = "AKIA" + "Q3EGRN7TWY2LKZ5M"
    assert secrets.without_secrets(f'é "{key}", "{key}" end') == 'é "", "" end'
    assert secrets.without_secrets("nothing here") == "nothing here"


def test_places_are_in_characters() -> None:
    """Letters of several bytes before a secret, and halves of a pair, do not move it."""
    key = "AKIA" + "Q3EGRN7TWY2LKZ5M"
    for before in ("", "é", "\U0001f511 \ud800", "漢字 "):
        (found,) = find_secrets(f'{before} "{key}"')
        assert f'{before} "{key}"'[found.start : found.end] == key


def test_a_fragment_of_a_public_certificate_is_none() -> None:
    """Its lines look like a key's, but its first line says what they are."""
    lines = "".join(f"{at:02}" + "q7Vx2LnPz9KdWm4sYtRb6HcJuG8fEa1oNi5TqZx7VB7kQ2xWn9Lp4VtRd6MhJ8\n" for at in range(4))
    assert find_secrets(lines, fragment=True)
    assert not find_secrets(lines)
    assert not find_secrets(f"-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n", fragment=True)


# What detect-secrets reports and we leave alone on purpose, by its type.
DIFFERENT = frozenset(
    {
        "Base64 High Entropy String",  # any long random string, secret or not: nothing says that it is one
        "Hex High Entropy String",
        "Public IP (ipv4)",  # no secret
        "Secret Keyword",  # also finds `password = "password"`; compared below for what is random
    }
)


# Lines of an invented project, in forms that its detectors look for.
MORE = (
    'STRIPE = "sk_live_' + 'Zt5iNo1aEf8GuJcHb6RbtYs4"',
    "slack_url = https://hooks.slack.com/services/" + "T0A1B2C3D/B9Z8Y7X6W/q7Vx2LnPz9KdWm4sYtRb6HcJ",
    "redis://worker:" + "s3cr3tValu3@cache.internal:6379/1",
    "AccountKey=" + "r6RbtYs4mWdK9zPnL2xV7qXw3TyU0rQeS1dFgHjKlMnBvCzAq2W4eR6tY8uI0oPa9k9Zt5iNo1aEf8GuJcHb6w==",
    "7283940156:" + "AAGz7V2LnPz9KdWm4sYtRb6HcJuG8fEa1oN",
    "//npm.pkg.github.com/:_authToken=" + "npm_Zt5iNo1aEf8GuJcHb6RbtYs4mWdK9zPnL2xV",
    "mail = 5f8a1c3e9b7d2046" + "5f8a1c3e9b7d2064-us7",
    'session = "xoxp-' + '571829304756-571829304757-571829304758-a1b2c3d4e5f60718293a4b5c6d7e8f90"',
    "-----BEGIN EC " + "PRIVATE KEY----- MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aYBzTq8",
    'key = "AKIA' + 'W4NQ7TRXJ2PLK6ZD"',
)


def test_detect_secrets_finds_nothing_that_we_miss(tmp_path: Path) -> None:
    """On a made-up corpus: every line it reports, by a detector that looks for a form, we report too; and of the
    stand-ins beside our rules it takes some for secrets, we none."""
    secrets = [_on_one_line(text) for rule in rules() for text in rule.finds]
    stand_ins = [_on_one_line(text) for rule in rules() for text in rule.misses]
    theirs = _theirs(tmp_path, [*secrets, *MORE])
    assert len(theirs) > 20
    assert {line for line in theirs if not find_secrets(line)} == set()
    assert _theirs(tmp_path, stand_ins)
    assert [line for line in stand_ins if find_secrets(line)] == []


def _on_one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", " ")


def _theirs(folder: Path, lines: list[str]) -> set[str]:
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    with default_settings():
        return {lines[each.line_number - 1] for each in scan_file(str(corpus)) if each.type not in DIFFERENT}


@pytest.mark.parametrize("unseen", ["\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u202e"])
def test_what_cannot_be_seen_hides_no_secret(unseen: str) -> None:
    """Inside a secret or its keyword, at the places in the text as it came; letters around it stay."""
    for rule in rules():
        for text in rule.finds[:1]:
            (whole, *_) = find_secrets(text)
            at = (whole.start + whole.end) // 2
            parted = f"\u00e4{unseen} {text[:at]}{unseen}{text[at:]}"
            assert [each for each in find_secrets(parted) if each.start <= at + 3 < each.end], rule.id
            (first, *_) = find_secrets(parted)
            assert parted[first.start : first.end].replace(unseen, "") in text, rule.id
    key = "AKIA" + "Q3EGRIUVBGEDJHTB"
    assert secrets.without_secrets(f"a{unseen}b {unseen.join(key)}{unseen} c") == f"a{unseen}b {unseen} c"
    assert find_secrets(f"caf\u00e9{unseen} and nothing else") == ()
