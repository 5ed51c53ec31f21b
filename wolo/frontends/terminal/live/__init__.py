"""The region below the scrollback that is redrawn while wolo works."""
