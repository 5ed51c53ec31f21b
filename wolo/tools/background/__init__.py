"""Background jobs, their output and their terminals."""
