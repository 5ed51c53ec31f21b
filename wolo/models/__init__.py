"""Which model, where, at what price, and the stream from it."""
