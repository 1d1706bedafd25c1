"""Inputs of a fit: training data from arrays, tables, objects and kernel matrices."""
