"""Decides what a tool call is allowed to do."""
