"""Fits by a search over kernels, metrics, lengthscales and penalties."""
