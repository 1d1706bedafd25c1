"""Predictions of a model compared with the truth, as sums over rows."""
