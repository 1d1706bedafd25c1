"""Kernels of products of rows."""
