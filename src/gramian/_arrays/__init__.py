"""Arrays of NumPy on the host, and of torch on a device, by one set of names.

Code that may compute on a device calls these functions where NumPy and torch differ; on the host
they are NumPy's. Nothing here imports torch for arrays of NumPy.
"""

from __future__ import annotations

import math

import numpy as np

from ._kinds import *
from .creation import *
from .elementwise import *
from .order import *
from .places import *
from .random import RandomStream, as_stream
from .shapes import *
from .sums import *

inf, nan, pi = math.inf, math.nan, math.pi

float64, float32, float16 = (np.dtype(name) for name in ("float64", "float32", "float16"))
int64, int32, int16, int8 = (np.dtype(name) for name in ("int64", "int32", "int16", "int8"))
uint8, bool = np.dtype("uint8"), np.dtype("bool")
