"""Parses and judges shell command lines."""
