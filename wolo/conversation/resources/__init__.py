"""What a conversation is assembled from: models, secrets, hooks, servers, sandbox, sessions."""
