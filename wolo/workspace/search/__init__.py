"""Walks the tree as git sees it."""
