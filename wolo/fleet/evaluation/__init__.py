"""Evaluation: data sets, hidden grading, and figures with their intervals."""
