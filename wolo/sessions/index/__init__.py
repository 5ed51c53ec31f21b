"""Indexes all sessions for search and statistics."""
