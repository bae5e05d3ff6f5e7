"""Core memories: short notes the user keeps, for all workspaces (user scope) or for one (project scope)."""

from __future__ import annotations

from haversack.memory.entries import LONGEST_CONTENT, Category, Memory, Scope
from haversack.memory.ranking import rank
from haversack.memory.store import MemoryStore, users_file

__all__ = ["LONGEST_CONTENT", "Category", "Memory", "MemoryStore", "Scope", "rank", "users_file"]
