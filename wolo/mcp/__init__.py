"""MCP servers: configuration, connections, and their tools as our own."""
