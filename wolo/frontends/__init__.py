"""Ways in and out: each turns events into something seen."""
