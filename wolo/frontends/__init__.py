"""Ways to use wolo: what comes in becomes a prompt, and events become something to see."""
