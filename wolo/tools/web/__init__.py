"""Pages of the web: which may be reached, how they are fetched, and what of them is worth reading."""
