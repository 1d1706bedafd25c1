"""Parts of PCG: the choice of its preconditioner, and its cost."""

from __future__ import annotations

from .recipe import PRECONDITIONER_KINDS, Inverse, Recipe

__all__ = ["PRECONDITIONER_KINDS", "Inverse", "Recipe"]
