"""Searches the workspace: grep and glob."""
