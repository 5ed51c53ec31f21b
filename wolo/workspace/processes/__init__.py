"""Runs processes and ends them with their descendants."""
