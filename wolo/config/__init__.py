"""Reads, checks and writes settings."""
