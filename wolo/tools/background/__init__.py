"""Commands that run in the background, and their output."""
