"""Runs many tasks, each in a worktree of its own: on this machine, by workers elsewhere, or on a cluster."""
