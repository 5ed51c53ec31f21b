"""Recover reasoning tags and tool calls that models leave in their text."""
