"""Streams requests to a provider over HTTP."""
