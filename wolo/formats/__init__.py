"""Wire formats: a request becomes JSON, JSON becomes deltas; no I/O, no keys."""
