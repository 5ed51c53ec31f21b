"""What was said, kept."""
