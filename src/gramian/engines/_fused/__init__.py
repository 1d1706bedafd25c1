"""Fused tiles in Triton, which `TritonEngine` runs on a GPU or in Triton's interpreter.

`profiles` has one function for each kernel, `tiles` the programs that all of them share. `points`
prepares rows for them, `distances` decides how distances are computed, `shapes` which tiles are
tried, `products` starts them, `normal` joins two products, and `gradients` multiplies with slopes.
Modules that need triton are imported when the first product is computed.
"""

from __future__ import annotations
