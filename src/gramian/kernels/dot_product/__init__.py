"""Kernels of inner products of rows."""
