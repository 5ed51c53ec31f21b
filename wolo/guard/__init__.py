"""What a tool call is allowed to do."""
