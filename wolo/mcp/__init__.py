"""Tools of MCP servers: how a server is reached, what it offers, and its tools as some of ours."""
