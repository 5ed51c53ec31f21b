"""Reads hook settings, runs hooks and reads their answers."""
