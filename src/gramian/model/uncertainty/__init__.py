"""Probabilities, standard deviations, intervals and sets of classes of a model."""
