"""What a user adds with a file."""
