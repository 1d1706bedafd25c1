"""Loading of the module of compiled code, if it was built."""

from __future__ import annotations

import functools
import logging
from importlib import import_module
from importlib.util import find_spec
from typing import Any

logger = logging.getLogger("gramian")

NATIVE_MODULE = "gramian.engines._native"

NEWEST_FUNCTION = "quantile_shares"
"""A function that modules lack that were built from older sources."""


@functools.cache
def load_compiled() -> Any:
    """Return the module of compiled code; None if it was not built.

    A module that was built from older sources is not used; a warning is logged.
    """
    if find_spec(NATIVE_MODULE) is None:
        return None
    module = import_module(NATIVE_MODULE)
    if not hasattr(module, NEWEST_FUNCTION):
        logger.warning(
            "%s was built from older sources and is not used until you rebuild it (pip install .)",
            NATIVE_MODULE,
        )
        return None
    return module
