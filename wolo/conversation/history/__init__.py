"""What the user can do with past turns: undo, branch, list changed files."""
