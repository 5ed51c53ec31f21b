"""Reads the session files of other agents, without changing them."""
