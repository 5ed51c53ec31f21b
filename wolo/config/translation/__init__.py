"""Translates permission rules of other agents, for a start and for an import."""
