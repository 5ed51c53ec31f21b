"""The parts of a conversation: models, secrets, hooks, servers, sandbox, sessions."""
