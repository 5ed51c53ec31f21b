"""A live conversation: agent, session and workspace together."""
