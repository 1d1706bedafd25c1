"""Models: predictors of one kernel or averages of several, blends with trees, and model files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
