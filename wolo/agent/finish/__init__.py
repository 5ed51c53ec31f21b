"""The finish check: compares the last edit of a turn with the last check that was run."""
