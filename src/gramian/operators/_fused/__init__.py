"""Fused tiles in Triton: what `TritonEngine` runs on a GPU, or in Triton's interpreter.

`profiles` has one function for each kernel, `tiles` the programs that all of them share, and
`products` prepares rows for them, decides how distances are computed, and starts them. The first
two need triton and are imported when the first product is computed.
"""

from __future__ import annotations
