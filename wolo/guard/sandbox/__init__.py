"""Walls around commands: the backends of the sandbox, the ladder that chooses one, and the proof that it holds."""
