"""What compaction is made of: how a conversation hangs together, and how its parts get shorter. Pure."""
