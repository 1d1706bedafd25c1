"""Preconditioned conjugate gradients on all rows."""
