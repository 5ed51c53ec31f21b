"""Shell completion: the scripts, and the program that answers a Tab."""
