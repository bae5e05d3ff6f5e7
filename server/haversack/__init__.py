"""Haversack decides what an AI model should read for a request, and says why."""

__version__ = "0.1.0"
