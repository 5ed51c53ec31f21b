"""Changes files: exact edits and patches."""
