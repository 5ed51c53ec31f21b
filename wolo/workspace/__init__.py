"""The directory the agent works in: its files, its tree, its processes."""
