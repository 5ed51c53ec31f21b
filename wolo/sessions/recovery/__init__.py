"""Saves what a damaged database still holds."""
