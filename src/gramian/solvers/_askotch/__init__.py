"""Parts of ASkotch: blocks and their inverses, momentum, and restarts at the best state."""
