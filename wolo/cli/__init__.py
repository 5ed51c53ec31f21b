"""The command line: options, subcommands, and how an error is shown."""
