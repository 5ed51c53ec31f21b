"""Speaks Claude Code's stream-json protocol, so that programs of its SDKs drive wolo."""
