"""Opens, saves and removes files by descriptor, within the workspace."""
