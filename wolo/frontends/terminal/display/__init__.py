"""Turns events into the lines that a terminal shows."""
