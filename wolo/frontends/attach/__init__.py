"""Follows and steers a session of `wolo serve` from a terminal or a pipe."""
