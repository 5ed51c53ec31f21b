"""What several formats need to lay out a request."""
