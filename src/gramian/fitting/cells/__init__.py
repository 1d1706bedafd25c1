"""Fits by cells: a full problem for the rows of each cell."""
