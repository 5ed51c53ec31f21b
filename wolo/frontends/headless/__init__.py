"""Runs one prompt without a terminal: text, JSON or JSON lines."""
