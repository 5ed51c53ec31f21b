"""Answers questions about this installation, a model or a saved session without asking a model."""
