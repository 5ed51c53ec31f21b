"""Settings: where they come from, and every one as a plain value."""
