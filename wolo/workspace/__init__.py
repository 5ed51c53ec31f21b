"""Works on the workspace: its files, directories and processes."""
