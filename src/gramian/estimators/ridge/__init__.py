"""Kernel ridge regression: the regressor, the classifier, and predictions of fitted models."""
