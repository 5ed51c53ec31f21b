"""Fetches web pages and extracts their text."""
