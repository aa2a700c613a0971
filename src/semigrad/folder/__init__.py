"""The folder of a run: how its files are written and read back."""
