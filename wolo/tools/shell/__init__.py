"""Runs shell commands."""
