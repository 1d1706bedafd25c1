"""Parts of ASkotch: blocks and their inverses, the momentum, and returns to the best state."""
