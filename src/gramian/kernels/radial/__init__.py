"""Kernels of a distance between rows, or between maps of rows."""
