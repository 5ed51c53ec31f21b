"""What several formats need to read a model's answer."""
