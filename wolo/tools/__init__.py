"""Tools that the model can call, one file each."""
