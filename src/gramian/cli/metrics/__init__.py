"""Metrics of predictions, as sums over rows."""
