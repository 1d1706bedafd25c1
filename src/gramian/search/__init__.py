"""Search over kernels, inputs, metrics, lengthscales and penalties by held-out error.

`Search` tries the choices in the cheapest order, within a `Budget`; `refit` makes the last fits
with all rows. Both need rows in memory; `gramian.fitting.search.fit` loads them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
