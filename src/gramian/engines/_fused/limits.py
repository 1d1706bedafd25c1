"""The memory that products of fused tiles may take in addition to their rows."""

from __future__ import annotations

SPLIT_ROWS = 1 << 18
"""Rows of sums at most that are kept apart, for columns that several programs share."""

SCRATCH_BYTES = 1 << 27
"""Memory for entries that `normal` keeps, or for sums of columns that `symmetric` keeps apart."""
