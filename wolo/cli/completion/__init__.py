"""Shell completion: the scripts, and the candidates they ask for."""
