"""Shared code to encode requests."""
