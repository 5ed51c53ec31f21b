"""Stores sessions and their entries."""
