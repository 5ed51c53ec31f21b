"""Readers of the sessions that other agents keep: they look at the files and never touch them."""
