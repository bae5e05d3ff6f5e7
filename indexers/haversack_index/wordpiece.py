"""Text to words to word pieces: how every embedder that ships here reads code.

Source of the piece rule: greedy longest match from the left with `##` marking inner pieces, as in BERT's
WordPiece (https://arxiv.org/abs/1810.04805, section 3, and the reference tokenizer that came with it).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

# Characters kept of a word: longer ones are base64 or hashes, code words end well before.
MAX_WORD = 40

# Where the reference tokenizer gives up on a word; cutting takes quadratic time.
MAX_CUT = 100

# A run of letters and digits of any script, broken at underscores: the coarse unit that is cached as written.
TOKEN = re.compile(r"[^\W_]+")

# camelCase, ACRONYMWord, digits; anything that is not ASCII stays one run and is cut by `_plain`.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]+")

# Scripts written without spaces: one character is the word.
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


# For the transformer: words, and each mark on its own.
_BERT_PART = re.compile(r"[^\W_]+|[^\w\s]|_")


def words_of(token: str) -> Iterator[str]:
    """The lower-cased words inside one token: `getHTTPResponse2` gives get, http, response, 2."""
    for part in _PART.findall(token if token.isascii() else _plain(token)):
        if _CJK.search(part):
            yield from (c for c in part if not c.isspace())
        else:
            yield part.lower()[:MAX_WORD]


def bert_words(text: str) -> Iterator[str]:
    """Words and single punctuation marks, lower-cased, without accents: BERT's own cutting, for its own models."""
    for part in _BERT_PART.findall(_plain(text).lower()):
        if _CJK.search(part):
            yield from part
        else:
            yield part


def _plain(token: str) -> str:
    """Without accents, as the vocabulary was made: `café` is read as `cafe`."""
    return "".join(c for c in unicodedata.normalize("NFD", token) if unicodedata.category(c) != "Mn")


class Vocabulary:
    """Pieces by number, in the order given."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self.size = len(pieces)

    def number(self, piece: str) -> int:
        """Raises KeyError for a piece that does not exist."""
        return self._numbers[piece]

    def cut(self, word: str) -> list[int]:
        """Numbers of the pieces of one lower-cased word; an empty list when no cutting covers all of it."""
        if (whole := self._numbers.get(word)) is not None:
            return [whole]
        if len(word) > MAX_CUT:
            return []
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if (number := self._numbers.get(piece)) is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return []
        return found


@cache
def shipped_pieces() -> tuple[str, ...]:
    """The 30,522 pieces of the MiniLM (BERT uncased) vocabulary, in order."""
    text = (files("haversack_index") / "data" / "vocabulary.txt").read_text(encoding="utf-8")
    return tuple(text.split("\n")[:-1])
