"""Bytes, keys and colours of the terminal."""
