"""What a turn may cost: exact decimal numbers from list prices, as a range from a short reply to the longest one."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from haversack.types import Cost, Model

# Tokens of a short reply: a few sentences and a line of code.
SHORT_REPLY = 256
# Digits of an amount at most, before and after the point.
LONGEST_AMOUNT = 20
_MILLION = Decimal(1_000_000)


def estimate(model: Model, prompt_tokens: int, longest_reply: int, limit: str = "") -> Cost | None:
    """None when a price is not known. A model on the user's own machine has no price list: without declared prices
    it costs nothing."""
    free = "0" if model.local else ""
    per_input, per_output = amount(model.input_price or free), amount(model.output_price or free)
    if per_input is None or per_output is None:
        return None
    prompt = prompt_tokens * per_input
    low = prompt + min(SHORT_REPLY, longest_reply) * per_output
    high = prompt + longest_reply * per_output
    return Cost(_written(low / _MILLION), _written(high / _MILLION), limit)


def needs_approval(cost: Cost | None, limit: str) -> bool:
    """Whether the turn may cost more than `limit`. What cannot be shown to stay under it may."""
    if not limit:
        return False
    ceiling, high = amount(limit), amount(cost.high) if cost is not None else None
    return ceiling is None or high is None or high > ceiling


def amount(text: str) -> Decimal | None:
    """A decimal number of a sane size that is not negative; None for any other text."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or value < 0:
        return None
    # `1e999999` is a number too, and would be written out.
    return value if len(text) <= LONGEST_AMOUNT and abs(value.adjusted()) <= LONGEST_AMOUNT else None


def _written(value: Decimal) -> str:
    """Digits without an exponent and without zeros at the end: equal amounts are equal texts."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
