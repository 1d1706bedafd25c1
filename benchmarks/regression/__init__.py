"""Kernel ridge regression on real sets beside scikit-learn."""
