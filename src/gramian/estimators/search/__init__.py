"""Estimators that search for kernel, metric, lengthscale and penalty."""
