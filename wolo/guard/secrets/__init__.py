"""Finds secrets and replaces them with placeholders."""
