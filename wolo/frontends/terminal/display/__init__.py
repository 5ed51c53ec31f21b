"""The terminal of one run, with its signals, and the lines that it shows for events."""
