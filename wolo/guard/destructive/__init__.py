"""Finds commands that delete what nothing brings back."""
