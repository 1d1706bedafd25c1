"""Held-out rows: folds, splits, early stopping, and predictions of rows that a fit did not see."""
