"""Functions of Arrow, imported at their first use, because Arrow generates each at import."""

from __future__ import annotations

from ..._imports import WhenUsed

pc = WhenUsed("pyarrow.compute")
