"""MCP servers inside the embedding program."""
