"""Slash commands: what a typed line beginning with / does."""
