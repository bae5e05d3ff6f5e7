"""What can go wrong between a text and its vector, told apart by what the caller should do next."""

from __future__ import annotations


class EmbeddingError(Exception):
    """Base of all embedding faults. The message is fit for a status line: it names the cause, never the texts."""


class TableError(EmbeddingError):
    """The token table on disk is missing, damaged or of an unknown layout. Trying again does not help."""


class MissingExtraError(EmbeddingError):
    """A package of an optional extra is not installed; the message names the extra."""


class ServiceUnavailableError(EmbeddingError):
    """The service can't answer now (refused, timed out, 5xx, 429).

    `retry_after` is in seconds, None when the service did not say.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InputTooLongError(EmbeddingError):
    """The service refused one text for its length even when sent alone; `index` is its place in the caller's list."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


class BadAnswerError(EmbeddingError):
    """The service answered, but not with usable vectors: wrong count, wrong size, NaN, unknown form. Store nothing."""


class RejectedError(EmbeddingError):
    """The service refused the request for good (unknown model, missing key, bad request). Needs a person."""
