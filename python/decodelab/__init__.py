"""decodelab as a Python package: the program in bin/, the scripts that it runs in tools/, and the launcher of the command `decodelab`."""
