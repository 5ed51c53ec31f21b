"""Finds commands that destroy data irrecoverably."""
