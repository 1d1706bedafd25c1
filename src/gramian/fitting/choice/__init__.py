"""Choices of a fit: kernel, lengthscale, penalty and landmarks."""
