"""Messages and their parts, as pure values."""
