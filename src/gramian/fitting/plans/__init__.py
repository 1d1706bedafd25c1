"""Plans of a fit: memory, kernel evaluations, seconds, and the placement of its data."""
