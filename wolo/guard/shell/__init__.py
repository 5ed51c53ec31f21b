"""Parses shell command lines."""
