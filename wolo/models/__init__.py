"""Models: which there are, how one is reached, what it costs, and its answer as it comes."""
