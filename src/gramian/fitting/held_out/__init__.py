"""Held-out rows: folds, splits, early stopping, and predictions of held-out rows."""
