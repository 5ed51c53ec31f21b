"""Exports sessions in the formats of other agents."""
