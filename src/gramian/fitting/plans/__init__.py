"""Plans of a fit: memory, kernel evaluations and seconds, and where its data are kept."""
