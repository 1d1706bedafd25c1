"""Parts of Newton's method: stages, coordinates, line search and state."""
