"""Fit a model to training data by given settings, without scikit-learn.

`fit` and `partial_fit` compute a model; `plan` and `check_memory` estimate seconds and memory
before a fit. The estimators and the command line check the input of the user, convert the input to
`FitSettings` and `TrainingData`, and keep the resulting `Fitted`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
