"""What was said: messages and their parts, as pure values."""
