"""The embedded model: weights, process and simple mode."""
