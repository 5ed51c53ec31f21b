"""Shared code to decode responses."""
