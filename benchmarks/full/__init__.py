"""Full kernel ridge regression: all rows are centers."""
