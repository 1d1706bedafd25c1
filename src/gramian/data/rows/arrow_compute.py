"""Functions of Arrow: imported when they are first used, since Arrow writes each of them anew."""

from __future__ import annotations

from ..._imports import WhenUsed

pc = WhenUsed("pyarrow.compute")
