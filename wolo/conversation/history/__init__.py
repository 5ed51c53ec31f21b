"""Undo, branches and changed files of past turns."""
