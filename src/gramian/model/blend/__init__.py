"""Blends of a kernel model with gradient-boosted trees of LightGBM."""
