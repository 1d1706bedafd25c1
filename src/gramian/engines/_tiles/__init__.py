"""Tiles of a kernel matrix: products and gradients, and the precision of distances."""
