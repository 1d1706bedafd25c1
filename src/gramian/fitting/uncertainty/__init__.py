"""Intervals, standard deviations and leave-one-out predictions of a fitted model."""
