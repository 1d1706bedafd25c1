"""Columns and reductions of rows that are on the workers of a cluster."""
