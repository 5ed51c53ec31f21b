"""The loop: ask, run the calls, ask again."""
