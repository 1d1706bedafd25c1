"""Explanation of predictions: Shapley values, nearest training rows, partial dependence.

    >>> from gramian.explain import shapley_values
    >>> # shapley_values(model, new_rows, background=training_rows).values

Functions take a fitted estimator, its ``model_``, or the file of a model. Shapley values of kernels
that are products or sums over the features are exact; other models are sampled.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
