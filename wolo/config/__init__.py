"""Settings: read at the top, handed down as plain values."""
