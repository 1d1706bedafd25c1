"""Products and fits on a GPU."""
