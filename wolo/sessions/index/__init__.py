"""The search index of all sessions."""
