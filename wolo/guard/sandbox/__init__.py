"""Sandbox backends for commands, their selection, and the probe that proves them."""
