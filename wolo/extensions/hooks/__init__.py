"""Reads hook definitions, runs hooks and interprets their output."""
