"""The command line: the same engine as the language server, for a person at a terminal or a script in a pipe."""
