"""Tools that ask the user."""
