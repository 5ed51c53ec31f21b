"""One live conversation: agent, session and workspace together."""
