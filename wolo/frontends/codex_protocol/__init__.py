"""Speaks Codex's protocols, so that programs of its SDK and its app server's clients drive wolo."""
