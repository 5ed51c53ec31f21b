"""What models leave in their text: reasoning between tags, and calls that were written out."""
