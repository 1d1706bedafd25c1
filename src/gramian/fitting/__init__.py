"""Fitting: from settings and training data to a model, without scikit-learn.

`fit` and `partial_fit` compute; `plan` and `check_memory` estimate seconds and memory before. The
estimators and the command line check user input, turn it into `FitSettings` and `TrainingData`, and
keep the resulting `Fitted`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
