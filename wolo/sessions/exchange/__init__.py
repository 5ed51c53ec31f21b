"""Exports sessions to files and imports them."""
