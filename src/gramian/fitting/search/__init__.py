"""Fit the best result of a search over kernels, metrics, lengthscales and penalties."""
