"""Walks directories as git sees them."""
