"""What Newton's method is made of: stages, coordinates, line search, state."""
