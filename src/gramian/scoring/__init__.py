"""Metrics of predictions: one table, its functions, and their forms for rows on a cluster."""
