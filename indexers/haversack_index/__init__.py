"""The index of one workspace folder: files, chunks, symbols, keywords and vectors. Knows no editor and no budget."""
