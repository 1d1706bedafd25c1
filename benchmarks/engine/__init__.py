"""Kernel products, and where the seconds of a fit go."""
