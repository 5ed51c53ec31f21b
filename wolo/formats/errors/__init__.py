"""Classify provider errors."""
