"""Values become what Rich can draw."""
