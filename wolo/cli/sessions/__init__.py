"""`wolo sessions`: one file a subcommand."""
