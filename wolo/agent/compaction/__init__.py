"""Makes a long conversation fit the model's context window."""
