"""Selectors, leverage scores, Nystrom approximations, and what is built on them."""
