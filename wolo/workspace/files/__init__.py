"""Opens, writes and removes files by descriptor."""
