"""Models: catalogue, clients, HTTP transport, prices and the embedded model."""
