"""The terminal: one task with live output, and the REPL."""
