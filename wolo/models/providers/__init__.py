"""One file a provider: its address, key names, format, dialect, models and prices."""
