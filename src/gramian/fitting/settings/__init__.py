"""Settings of a fit: parameters whose values are checked, and their meaning for given rows."""
