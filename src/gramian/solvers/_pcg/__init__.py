"""Parts of PCG: which preconditioner it builds, and what that costs."""

from __future__ import annotations

from .recipe import PRECONDITIONERS, Inverse, Recipe

__all__ = ["PRECONDITIONERS", "Inverse", "Recipe"]
