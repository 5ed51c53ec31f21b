"""Wire formats: requests become JSON, JSON becomes deltas; no I/O, no keys."""
