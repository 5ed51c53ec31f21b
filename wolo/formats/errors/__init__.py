"""What servers mean when they refuse."""
