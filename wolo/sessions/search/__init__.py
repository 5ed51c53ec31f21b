"""Searches and counts saved sessions."""
