"""Records file changes of a conversation and undoes them."""
