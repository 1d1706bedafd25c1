"""Tiles of a kernel matrix in torch: products and gradients, and the precision of distances."""
