"""Replays a saved session as a test, without a provider."""
