"""Linters for request bodies: what strict servers would refuse."""
