"""Who may read what, and what models are like: privacy rules and the model catalogue."""
