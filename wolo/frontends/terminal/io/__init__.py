"""Bytes, keys and signals of the terminal."""
