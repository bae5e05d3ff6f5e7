"""What a model answers at the cursor, made into what an editor may offer."""
