"""Kernels and precision of the compiled tiles."""
