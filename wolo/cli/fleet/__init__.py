"""Subcommands for many tasks."""
