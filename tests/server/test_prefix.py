"""How much of a prompt begins as the one before did."""

from __future__ import annotations

from haversack.conversation.prefix import Sent, shared


def test_what_is_shared_ends_at_the_first_other_letter() -> None:
    """Whole messages count in full, the next one up to where it differs, and nothing after that."""
    before = Sent(("rules", "first question", "same end"))
    assert shared(before, before) == before.length
    assert shared(before, Sent(("rules", "first answer", "same end"))) == len("rules" + "first ")
    assert shared(before, Sent(("rules", "first question", "same end", "more"))) == before.length
    assert shared(before, Sent(("rules", "first"))) == len("rules" + "first")
    assert shared(before, Sent(("other",))) == 0
